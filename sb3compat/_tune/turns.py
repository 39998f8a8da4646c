"""Time several environments alternately, so that other load on the machine affects all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sb3compat._convert.spaces import ARRAYS
from sb3compat._upstream.sb3 import VecEnv

# The number of turns of each. A turn must be much longer than waking a sleeping worker.
ROUNDS = 7
# Batches of actions that are drawn before the clock starts.
_BATCHES = 16


class Rate(NamedTuple):
    """How fast an environment is.

    Attributes:
        steps: Steps of single environments per second, the median of the turns.
        low: The slowest turn.
        high: The fastest turn.
    """

    steps: float
    low: float
    high: float


def rates(envs: Mapping[str, VecEnv], seconds: float) -> dict[str, Rate]:
    """Step the environments alternately.

    Args:
        envs: The environments by name; they have been reset.
        seconds: How long to step them, all together. Where single steps take longer than a turn,
            there are fewer turns.
    """
    batches = {name: _actions(env) for name, env in envs.items()}
    turn = seconds / (ROUNDS + 1) / len(envs)
    found: dict[str, list[float]] = {name: [] for name in envs}
    start = time.perf_counter()
    for number in range(ROUNDS + 1):
        if number > 1 and time.perf_counter() - start > seconds:
            break
        for name, env in envs.items():
            rate = _turn(env, batches[name], turn)
            if number:  # the first turn warms caches and processes
                found[name].append(rate)
    return {
        name: Rate(statistics.median(turns), min(turns), max(turns))
        for name, turns in found.items()
    }


def _actions(env: VecEnv) -> list[Any]:
    env.action_space.seed(0)
    batches = [[env.action_space.sample() for _ in range(env.num_envs)] for _ in range(_BATCHES)]
    # Algorithms pass arrays where an action is one.
    return [np.array(each) if isinstance(env.action_space, ARRAYS) else each for each in batches]


def _turn(env: VecEnv, batches: Sequence[Any], seconds: float) -> float:
    """Steps of single environments per second."""
    steps = 0
    start = now = time.perf_counter()
    while now - start < seconds or not steps:
        env.step(batches[steps % len(batches)])
        steps += 1
        now = time.perf_counter()
    return steps * env.num_envs / (now - start)
