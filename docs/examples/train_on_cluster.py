"""Train PPO while the environments step on a Ray cluster, and print frames per second.

    python docs/examples/train_on_cluster.py --rows 16 --workers 2
    ray job submit --working-dir docs/examples -- python train_on_cluster.py --rows 512 \
        --checkpoints /home/me/checkpoints
    ... --machines 8    # one actor for each of 8 machines, over the cores of each

Without a cluster, Ray starts one on this machine.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from typing import Any

import gymnasium as gym

import sb3compat


def machine(env_id: str, rows: int) -> sb3compat.ParallelVecEnv:
    """What an actor of a machine holds: rows over all of its cores."""
    return sb3compat.ParallelVecEnv([partial(gym.make, env_id)] * rows)


def make_env(args: argparse.Namespace) -> sb3compat.ParallelVecEnv:
    make = partial(gym.make, args.env)
    kept: dict[str, Any] = {"backend": "ray", "on_worker_lost": args.on_worker_lost}
    if not args.machines:
        return sb3compat.ParallelVecEnv([make] * args.rows, workers=args.workers, **kept)
    # Whole machines: as many processors as each has, so that no two actors share one.
    options = {"num_cpus": args.cores, "scheduling_strategy": "SPREAD"}
    parts = [partial(machine, args.env, args.rows // args.machines)] * args.machines
    return sb3compat.ParallelVecEnv(parts, workers=args.machines, actor_options=options, **kept)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train PPO with environments on a Ray cluster.")
    parser.add_argument("--env", default="CartPole-v1")
    parser.add_argument("--rows", type=int, default=64, help="environments, in all")
    parser.add_argument("--workers", type=int, help="actors; default: one for each free processor")
    parser.add_argument("--machines", type=int, default=0, help="an actor for each machine instead")
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="of each machine")
    parser.add_argument("--timesteps", type=int, default=200_000)
    parser.add_argument("--on-worker-lost", choices=["raise", "restart"], default="restart")
    parser.add_argument("--checkpoints", default="checkpoints", help="a folder that outlives a job")
    parser.add_argument("--resume", metavar="FILE", help="a checkpoint to go on from")
    args = parser.parse_args()

    # Imported here, so that the worker processes do not import SB3 and torch.
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import CheckpointCallback
    from stable_baselines3.common.vec_env import VecMonitor

    env = make_env(args)
    print(env, flush=True)
    steps = max(16, 2048 // env.num_envs)
    if args.resume:
        model = PPO.load(args.resume, VecMonitor(env), device="cpu")
    else:
        model = PPO("MlpPolicy", VecMonitor(env), n_steps=steps, batch_size=512, device="cpu")
    before, start = model.num_timesteps, time.perf_counter()
    model.learn(
        args.timesteps,
        callback=CheckpointCallback(max(1, 100_000 // env.num_envs), args.checkpoints),
        reset_num_timesteps=not args.resume,
    )
    rate = (model.num_timesteps - before) / (time.perf_counter() - start)
    returns = [episode["r"] for episode in model.ep_info_buffer or ()]
    mean = sum(returns) / max(1, len(returns))
    print(f"trained for {model.num_timesteps} frames, {rate:,.0f} a second; mean return {mean:.0f}")
    env.close()


if __name__ == "__main__":
    main()
