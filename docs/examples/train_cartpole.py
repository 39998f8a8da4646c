"""Train PPO on 64 CartPoles that step as one NumPy program, and check that it learned.

Gymnasium's own vectorised CartPole goes straight into Stable-Baselines3. The script compares its
speed with that of SB3's `DummyVecEnv`, trains, evaluates, and saves the learning curve. Its exit
status is 1 if the policy did not learn.

    python docs/examples/train_cartpole.py
    python docs/examples/train_cartpole.py --short --plot curve.png
    python docs/examples/train_cartpole.py --plot docs/learning-curve.svg    # the README's
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from functools import partial

import gymnasium as gym
import matplotlib as mpl
import numpy as np
import torch
from matplotlib.figure import Figure
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor
from tqdm import tqdm

import sb3compat

ENV_ID = "CartPole-v1"
EVALUATION_EPISODES = 100

# Timesteps, and the mean return that counts as learned. A random policy reaches about 22, a perfect
# one 500.
FULL = (200_000, 475.0)
SHORT = (60_000, 195.0)

# Of the figure: can be read on white and on black.
COLOURED = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
STYLE = dict.fromkeys(COLOURED, "gray")


def make_env(num_envs: int) -> VecEnv:
    return sb3compat.to_sb3(gym.make_vec(ENV_ID, num_envs=num_envs))


class Progress(BaseCallback):
    """A progress bar with the mean return of the last 100 episodes, which it also records.

    Args:
        total_timesteps: The length of the bar.
    """

    def __init__(self, total_timesteps: int) -> None:
        super().__init__()
        # Where the output is not a terminal, each refresh stays in the log: fewer of them.
        interval = 0.1 if sys.stderr.isatty() else 5.0
        self.bar = tqdm(total=total_timesteps, unit=" steps", mininterval=interval)
        self.timesteps: list[int] = []
        self.returns: list[float] = []

    def _on_step(self) -> bool:
        self.bar.update(self.num_timesteps - self.bar.n)
        return True

    def _on_rollout_end(self) -> None:
        episodes = self.model.ep_info_buffer
        if episodes:
            self.timesteps.append(self.num_timesteps)
            self.returns.append(statistics.fmean(episode["r"] for episode in episodes))
            self.bar.set_postfix_str(f"mean return {self.returns[-1]:.1f}", refresh=False)

    def _on_training_end(self) -> None:
        self.bar.close()


def make_model(num_envs: int, seed: int) -> PPO:
    return PPO(
        "MlpPolicy",
        VecMonitor(make_env(num_envs)),
        n_steps=max(16, 2048 // num_envs),
        batch_size=512,
        # Shrinks to nothing over the run, so that it ends on a settled policy. SB3 finishes the
        # last rollout, after which less than nothing remains.
        learning_rate=lambda remaining: 2e-3 * max(remaining, 0.0),
        seed=seed,
        device="cpu",
    )


def train(model: PPO, timesteps: int) -> Progress:
    # PPO only stops after a whole rollout.
    rollout = model.n_steps * model.n_envs
    progress = Progress(math.ceil(timesteps / rollout) * rollout)
    model.learn(timesteps, callback=progress)
    return progress


def evaluate(model: PPO, seed: int) -> float:
    """The mean return over 100 episodes in fresh environments.

    Actions are sampled. Greedy ones prove little here: one untrained network in ten balances the
    pole for more than 195 steps that way, by luck. Sampled, each falls after about 22.
    """
    env = VecMonitor(make_env(model.n_envs))
    env.seed(seed)
    returns, _ = evaluate_policy(
        model,
        env,
        n_eval_episodes=EVALUATION_EPISODES,
        deterministic=False,
        return_episode_rewards=True,
    )
    env.close()
    return float(np.mean(returns))


def steps_per_second(envs: list[VecEnv], seed: int, rounds: int = 15) -> list[float]:
    """The environment steps per second of each env under random actions.

    The envs take turns in short blocks, so that whatever else the machine does slows all alike;
    the median block counts.
    """
    num_envs = envs[0].num_envs
    rng = np.random.default_rng(seed)
    actions = rng.integers(2, size=(max(4, 4096 // num_envs), num_envs))
    for env in envs:
        env.seed(seed)
        env.reset()
    rates: list[list[float]] = [[] for _ in envs]
    for _ in range(rounds):
        for env, results in zip(envs, rates, strict=True):
            start = time.perf_counter()
            for action in actions:
                env.step(action)
            results.append(actions.size / (time.perf_counter() - start))
    return [statistics.median(results) for results in rates]


def compare_speed(num_envs: int, seed: int) -> None:
    adapted = make_env(num_envs)
    dummy = DummyVecEnv([partial(gym.make, ENV_ID) for _ in range(num_envs)])
    adapted_rate, dummy_rate = steps_per_second([adapted, dummy], seed)
    print(f"Environment steps per second, {num_envs} environments:")
    print(f"  to_sb3(gym.make_vec(...))  {adapted_rate:>11,.0f}")
    print(f"  DummyVecEnv                {dummy_rate:>11,.0f}")
    print(f"  ratio                      {adapted_rate / dummy_rate:>11.1f}", flush=True)
    adapted.close()
    dummy.close()


def plot(progress: Progress, path: str) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6, 2.6), layout="constrained")
        axes = figure.subplots()
        axes.plot(progress.timesteps, progress.returns)
        axes.set(
            title=f"PPO on {ENV_ID}",
            xlabel="environment steps",
            ylabel="mean return\nof the last 100 episodes",
            ylim=(0, 510),
        )
        axes.locator_params(axis="x", nbins=5)
        axes.grid(alpha=0.3)
        # Without a date, so that the same curve is the same SVG.
        metadata = {"Date": None} if path.endswith(".svg") else None
        figure.savefig(path, dpi=150, metadata=metadata, transparent=path.endswith(".svg"))


def main() -> int:
    parser = argparse.ArgumentParser(description=f"Train PPO on {ENV_ID}, vectorised.")
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--timesteps", type=int, help=f"default: {FULL[0]}; short: {SHORT[0]}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--short", action="store_true", help="a shorter run, a lower threshold")
    parser.add_argument("--plot", default="learning_curve.png", help="a PNG or SVG file")
    args = parser.parse_args()
    timesteps, threshold = SHORT if args.short else FULL
    timesteps = args.timesteps or timesteps

    # The network is so small that more threads only wait for one another.
    torch.set_num_threads(1)

    compare_speed(args.num_envs, args.seed)

    model = make_model(args.num_envs, args.seed)
    untrained = evaluate(model, args.seed + 1)
    progress = train(model, timesteps)
    plot(progress, args.plot)
    print(f"Learning curve: {args.plot}")

    mean = evaluate(model, args.seed + 1)
    learned = mean >= threshold
    verdict = "learned" if learned else f"did not learn (expected at least {threshold:.0f})"
    print(f"{verdict}: mean return {mean:.1f} over {EVALUATION_EPISODES} episodes", end="")
    print(f" (before training: {untrained:.1f})")
    return 0 if learned else 1


if __name__ == "__main__":
    sys.exit(main())
