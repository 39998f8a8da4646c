"""Millions of steps from each kind of source, and what the processes hold before and after."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import sb3compat
from tests.parallel.echoing import MakeEchoing
from tests.resources import held

# The share of steps before the first look: what is allocated once is there by then.
WARM = 0.05


def fns(n: int) -> list[Any]:
    return [MakeEchoing(row) for row in range(n)]


def sync(n: int) -> Any:
    return sb3compat.to_sb3(SyncVectorEnv(fns(n)))


def sync_same_step(n: int) -> Any:
    return sb3compat.to_sb3(SyncVectorEnv(fns(n), autoreset_mode=AutoresetMode.SAME_STEP))


def asynchronous(n: int) -> Any:
    return sb3compat.to_sb3(AsyncVectorEnv(fns(n)))


def native(n: int) -> Any:
    return sb3compat.to_sb3(gym.make_vec("CartPole-v1", n, vectorization_mode="vector_entry_point"))


def processes(n: int) -> Any:
    return sb3compat.ParallelVecEnv(fns(n), workers=2)


def on_ray(n: int) -> Any:
    import ray

    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
    )
    return sb3compat.ParallelVecEnv(fns(n), workers=2, backend="ray")


def dummy(n: int) -> Any:
    from stable_baselines3.common.vec_env import DummyVecEnv

    return DummyVecEnv(fns(n))


def subproc(n: int) -> Any:
    from stable_baselines3.common.vec_env import SubprocVecEnv

    return SubprocVecEnv(fns(n), start_method="fork")


@dataclass(frozen=True)
class Source:
    """Where steps come from.

    Attributes:
        shown: How the page calls it.
        make: Makes an environment of so many rows.
        rows: How many rows.
        share: The share of all steps.
    """

    shown: str
    make: Callable[[int], Any]
    rows: int
    share: float


def back(make: Callable[[int], Any]) -> Callable[[int], Any]:
    return lambda n: sb3compat.to_gymnasium(make(n))


def round_trip(n: int) -> Any:
    return sb3compat.to_sb3(sb3compat.to_gymnasium(dummy(n)))


SOURCES = {
    "native": Source("`to_sb3` of a native `CartPoleVectorEnv`", native, 4096, 0.45),
    "sync": Source("`to_sb3` of `SyncVectorEnv`, next-step", sync, 64, 0.06),
    "same-step": Source("`to_sb3` of `SyncVectorEnv`, same-step", sync_same_step, 64, 0.06),
    "async": Source("`to_sb3` of `AsyncVectorEnv`", asynchronous, 4, 0.01),
    "processes": Source("`ParallelVecEnv`, two processes", processes, 256, 0.2),
    "ray": Source("`ParallelVecEnv`, two actors of Ray", on_ray, 256, 0.05),
    "dummy": Source("`to_gymnasium` of `DummyVecEnv`", back(dummy), 64, 0.06),
    "subproc": Source("`to_gymnasium` of `SubprocVecEnv`", back(subproc), 4, 0.01),
    "back": Source("`to_gymnasium` of `ParallelVecEnv`", back(processes), 64, 0.05),
    "round-trip": Source("`to_sb3` of `to_gymnasium` of `DummyVecEnv`", round_trip, 64, 0.05),
}


def soak(source: Source, steps: int) -> dict[str, Any]:
    """Step all rows so many times; each observation of ours says which row it is of."""
    env = source.make(source.rows)
    env.reset()
    space = env.action_space
    actions = np.resize(np.arange(2), source.rows).astype(getattr(space, "dtype", np.int64))
    named = source.make is not native
    numbers = np.arange(source.rows, dtype=np.float32)
    warm = max(1, int(steps * WARM))
    started = time.monotonic()
    for number in range(warm + steps):
        if number == warm:
            first = held()
        observations = env.step(actions)[0]
        if named and not np.array_equal(observations[:, 0], numbers):
            raise AssertionError(f"observations of other rows: {observations[:, 0]}")
    last = held()
    seconds = time.monotonic() - started
    env.close()
    found = {"steps": steps * source.rows, "seconds": seconds}
    return found | {"first": first._asdict(), "last": last._asdict()}


if __name__ == "__main__":
    chosen = SOURCES[sys.argv[1]]
    calls = max(20, round(int(sys.argv[2]) * chosen.share / chosen.rows))
    Path(sys.argv[3]).write_text(json.dumps(soak(chosen, calls)))
