"""What the conversion costs, as ratios to the obvious alternative.

    make bench

The two sides of a row take turns in short blocks within one run, so that a busy machine slows both;
the median block of each counts. Compare ratios, never times from different runs.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from back import back_cases
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv

import sb3compat
from sb3compat.infos import split_infos

BLOCK_SECONDS = 0.02

Work = Callable[[], object]
# What is measured, n, sb3compat's side, what it is compared with, the other side.
Case = tuple[str, int, Work, str, Work]

make_cartpole = partial(gym.make, "CartPole-v1")


def make_actions(num_envs: int) -> Iterator[Any]:
    return cycle(np.random.default_rng(0).integers(2, size=(256, num_envs)))


def stepping(env: VecEnv) -> Work:
    actions = make_actions(env.num_envs)
    env.seed(0)
    env.reset()
    return lambda: env.step(next(actions))


def stepping_raw(env: gym.vector.VectorEnv[Any, Any, Any]) -> Work:
    actions = make_actions(env.num_envs)
    env.reset(seed=0)
    return lambda: (env.step(next(actions)), [{} for _ in range(env.num_envs)])


def sync_cases() -> Iterator[Case]:
    for n in (1, 8, 64):
        makers: list[Callable[[], gym.Env[Any, Any]]] = [make_cartpole] * n
        sync = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
        ours = stepping(sb3compat.to_sb3(sync))
        yield "step, Sync CartPole", n, ours, "DummyVecEnv", stepping(DummyVecEnv(makers))


def native_cases() -> Iterator[Case]:
    make = partial(gym.make_vec, "CartPole-v1", vectorization_mode="vector_entry_point")
    for n in (64, 1024, 4096):
        ours = stepping(sb3compat.to_sb3(make(num_envs=n)))
        other = stepping_raw(make(num_envs=n))
        yield "step, native CartPole", n, ours, "the env and a list of n dicts", other


class ImageEnv(gym.Env[Any, Any]):
    """A new image with every step, and no work besides."""

    observation_space = gym.spaces.Box(0, 255, (84, 84, 4), np.uint8)
    action_space = gym.spaces.Discrete(2)

    def __init__(self) -> None:
        self.images = np.random.default_rng(0).integers(256, size=(16, 84, 84, 4), dtype=np.uint8)
        self.time = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return self.step(0)[0], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        return self.images[self.time % 16], 0.0, False, self.time % 500 == 0, {}


def parallel_cases() -> Iterator[Case]:
    for n in (2, 8):
        source = AsyncVectorEnv(
            [ImageEnv] * n, context="forkserver", autoreset_mode=AutoresetMode.SAME_STEP
        )
        ours, other = sb3compat.to_sb3(source), SubprocVecEnv([ImageEnv] * n)
        yield "step, Async images", n, stepping(ours), "SubprocVecEnv", stepping(other)
        ours.close()
        other.close()


def infos_cases() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for n in (64, 1024, 4096):
        a, b, c, d = rng.random((4, n))
        e, f = rng.integers(100, size=n), rng.random(n) < 0.5
        infos: dict[str, Any] = {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f}
        infos |= {f"_{key}": np.ones(n, bool) for key in infos}
        ours = partial(split_infos, infos, n)
        wrapper = DictInfoToList(gym.make_vec("CartPole-v1", num_envs=n))
        convert = partial(wrapper._convert_info_to_list, infos)

        def literal(columns: tuple[Any, ...] = (a, b, c, d, e, f)) -> list[dict[str, Any]]:
            return [
                {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f}
                for a, b, c, d, e, f in zip(*(k.tolist() for k in columns), strict=True)
            ]

        yield "split 6 infos", n, ours, "DictInfoToList", convert
        yield "split 6 infos", n, ours, "a dict literal by hand", literal


def seconds(work: Work, repeat: int) -> float:
    start = time.perf_counter()
    for _ in range(repeat):
        work()
    return (time.perf_counter() - start) / repeat


def interleaved(works: list[Work], rounds: int) -> list[float]:
    """The median seconds that one call of each takes."""
    repeats = [max(1, round(BLOCK_SECONDS / seconds(work, 10))) for work in works]
    blocks = [
        [seconds(work, repeat) for work, repeat in zip(works, repeats, strict=True)]
        for _ in range(rounds)
    ]
    return [statistics.median(times) for times in zip(*blocks, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=15, help="blocks for each side of a row")
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)

    print(f"{'':22} {'n':>5} {'sb3compat':>12}  {'compared with':30} {'':>12} {'ratio':>6}")
    back = back_cases(ImageEnv)
    for cases in (sync_cases(), native_cases(), parallel_cases(), infos_cases(), back):
        for what, n, ours, other, theirs in cases:
            mine, its = interleaved([ours, theirs], rounds)
            times = f"{mine * 1e6:>9.1f} us", f"{its * 1e6:>9.1f} us"
            print(f"{what:22} {n:>5} {times[0]}  {other:30} {times[1]} {mine / its:>6.2f}")
    print("ratio: sb3compat's time by the other's; below 1, sb3compat is faster")


if __name__ == "__main__":
    main()
