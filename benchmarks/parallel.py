"""`ParallelVecEnv` with two workers, against the environments that SB3's users have otherwise."""

from __future__ import annotations

import multiprocessing as mp
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import gymnasium as gym
from envs import ImageEnv, SlowEnv
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from measure import Row, Work, compare, make_actions
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv

import sb3compat

WORKERS = 2
BLOCK_SECONDS = 0.2
make_cartpole = partial(gym.make, "CartPole-v1")
make_cheetah = partial(gym.make, "HalfCheetah-v5")
make_native = partial(gym.make_vec, "CartPole-v1", vectorization_mode="vector_entry_point")

Make = Callable[[list[Any]], VecEnv]


def ours(fns: list[Any]) -> VecEnv:
    return sb3compat.ParallelVecEnv(fns, workers=WORKERS)


def adapted_async(fns: list[Any]) -> VecEnv:
    return sb3compat.to_sb3(AsyncVectorEnv(fns, autoreset_mode=AutoresetMode.SAME_STEP))


def one_native(fns: list[Any]) -> VecEnv:
    return sb3compat.to_sb3(make_native(num_envs=len(fns) * 4096))


OTHERS: dict[str, Make] = {
    "DummyVecEnv": DummyVecEnv,
    "SubprocVecEnv": SubprocVecEnv,
    "adapted AsyncVectorEnv": adapted_async,
    "one native env": one_native,
}
# What, its function, how many of them, against what, and the aim: so many times its frames/s.
CASES: list[tuple[str, Callable[[], Any], int, str, float]] = [
    ("parallel CartPole", make_cartpole, 32, "SubprocVecEnv", 7),
    ("parallel CartPole", make_cartpole, 32, "adapted AsyncVectorEnv", 5),
    ("parallel CartPole", make_cartpole, 256, "DummyVecEnv", 1.6),
    ("parallel images", ImageEnv, 8, "SubprocVecEnv", 4.5),
    ("parallel images", ImageEnv, 32, "SubprocVecEnv", 15),
    ("parallel 200 us a step", SlowEnv, 16, "DummyVecEnv", 1.8),
    ("parallel native, 4096 each", partial(make_native, num_envs=4096), 2, "one native env", 1.2),
    ("parallel HalfCheetah", make_cheetah, 16, "SubprocVecEnv", 1.5),
    ("parallel HalfCheetah", make_cheetah, 16, "DummyVecEnv", 1.6),
]


# Steps between two messages of processes that are compared with nobody.
ALONE = 20


def parallel(rounds: int) -> Iterator[Row]:
    for what, make, count, name, times in CASES:
        sides = [build([make] * count) for build in (ours, OTHERS[name])]
        works = [stepping(env) for env in sides]
        n = sides[0].num_envs
        yield compare(
            what, n, works[0], name, works[1],
            rounds=rounds, aim=1 / times, frames=n, block=BLOCK_SECONDS,
        )  # fmt: skip
        for env in sides:
            env.close()
    yield from ways(rounds)
    yield from limits(rounds)
    yield learning(rounds)
    yield from memory()


# Other ways to hold the rows, each against two workers that sleep until a message comes.
WAYS: dict[str, dict[str, Any]] = {
    "1 worker, parent_steps": {"workers": 1, "parent_steps": True},
    "1 worker, the same, spinning": {"workers": 1, "parent_steps": True, "spin_seconds": 1e-4},
    "1 worker, spinning": {"workers": 1, "spin_seconds": 1e-4},
}


def ways(rounds: int) -> Iterator[Row]:
    """What `parent_steps` and `spin_seconds` bring on two cores."""
    for what, make, n in (("CartPole", make_cartpole, 256), ("images", ImageEnv, 8)):
        for name, options in WAYS.items():
            sides = [sb3compat.ParallelVecEnv([make] * n, **options), ours([make] * n)]
            works = [stepping(env) for env in sides]
            yield compare(
                f"{what}, {name}", n, works[0], "2 workers", works[1],
                rounds=rounds, frames=n, block=BLOCK_SECONDS,
            )  # fmt: skip
            for env in sides:
                env.close()


def limits(rounds: int) -> Iterator[Row]:
    """What two cores can do at most: half the rows in each of two processes that hardly speak."""
    for what, make, n, name, _ in CASES:
        if name != "DummyVecEnv":
            continue
        pipes, processes = [], []
        for _ in range(WORKERS):
            pipe, other = mp.Pipe()
            processes.append(mp.get_context("spawn").Process(target=alone, args=(other, make, n)))
            pipes.append(pipe)
            processes[-1].start()
        step = stepping(DummyVecEnv([make] * n))
        yield compare(
            what.replace("parallel", "the limit:"), n, partial(go_on, pipes),
            name, lambda step=step: [step() for _ in range(ALONE)],
            rounds=rounds, frames=n * ALONE, block=BLOCK_SECONDS,
        )  # fmt: skip
        for process in processes:
            process.kill()
            process.join()


def alone(pipe: Connection[Any, Any], make: Callable[[], Any], n: int) -> None:
    """Step a share of n rows so many times for each message."""
    step = stepping(DummyVecEnv([make] * (n // WORKERS)))
    while True:
        pipe.recv()
        for _ in range(ALONE):
            step()
        pipe.send(None)


def go_on(pipes: list[Connection[Any, Any]]) -> None:
    for pipe in pipes:
        pipe.send(None)
    for pipe in pipes:
        pipe.recv()


def learning(rounds: int, n: int = 16, n_steps: int = 128) -> Row:
    """PPO with SB3's defaults but for the length of a rollout: collecting one, and training."""
    sides = [build([make_cheetah] * n) for build in (ours, SubprocVecEnv)]
    models = [PPO("MlpPolicy", env, n_steps=n_steps, seed=0, device="cpu") for env in sides]
    frames = n * n_steps
    works = [partial(model.learn, frames, reset_num_timesteps=False) for model in models]
    row = compare(
        "parallel PPO, HalfCheetah", n, works[0], "SubprocVecEnv", works[1],
        rounds=max(4, rounds // 4), frames=frames,
    )  # fmt: skip
    for env in sides:
        env.close()
    return row


def stepping(env: VecEnv) -> Work:
    env.seed(0)
    env.reset()
    if isinstance(env.action_space, gym.spaces.Discrete):
        actions = make_actions(env.num_envs)
        return lambda: env.step(next(actions))
    env.action_space.seed(0)
    batch = [env.action_space.sample() for _ in range(env.num_envs)]
    return lambda: env.step(batch)


def memory() -> Iterator[Row]:
    """The private memory of all workers together."""
    before = children_of_this()
    totals = []
    for build in (ours, SubprocVecEnv):
        env = build([make_cartpole] * 32)
        stepping(env)()
        time.sleep(0.5)  # until the last worker has imported what it imports
        totals.append(sum(map(private_memory, children_of_this() - before)))
        env.close()
    ratio = totals[0] / totals[1] if totals[1] else 0.0
    if totals[0]:
        yield Row(
            "parallel, all workers", 32, "SubprocVecEnv", *totals, "MB", ratio, ratio, ratio, 1 / 30
        )


def children_of_this() -> set[int]:
    """All processes below this one; none where Linux does not tell."""
    found: set[int] = set()
    waiting = [Path("/proc/self")]
    while waiting:
        for task in (waiting.pop() / "task").glob("*/children"):
            pids = set(map(int, task.read_text().split())) - found
            found |= pids
            waiting += [Path(f"/proc/{pid}") for pid in pids]
    return found


def private_memory(pid: int) -> float:
    """The memory that only this process has, in MB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1e3
