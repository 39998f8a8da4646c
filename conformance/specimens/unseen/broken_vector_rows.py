"""Broken VectorEnvs that loop over single environments, and a wrapper."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.toy_text.taxi import TaxiEnv
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from conformance.specimens.registry import unseen
from conformance.specimens.unseen.rows import Corridor, Swing
from conformance.specimens.unseen.vector_parts import (
    NEXT_STEP,
    Reset,
    RowsVectorEnv,
    Step,
)

LIMITS = tuple(partial(Corridor, 6, limit) for limit in (4, 6, 8))
SWINGS = tuple(partial(Swing, limit) for limit in (5, 7, 9, 11))


def taxi() -> gym.Env[Any, Any]:
    """Return the taxi, for twelve steps."""
    return TimeLimit(TaxiEnv(), 12)


def one_hot(numbers: Any) -> Any:
    """Return rows with a 1 in the place of the number."""
    return np.eye(500, dtype=np.float32)[numbers]


@unseen(
    "vector_env",
    broken=True,
    mode=NEXT_STEP,
    singles=SWINGS,
    untold="the other rows show a reward of 0 and a jump, which may be what those rows do",
)
class EveryoneRestarts(RowsVectorEnv):
    """Four pendulums with limits of their own.

    Wrong: as soon as one of them has ended, the next step resets all four.
    """

    def __init__(self) -> None:
        super().__init__(SWINGS, NEXT_STEP)

    def step(self, actions: Any) -> Step:
        if self.ended.any():
            obs, infos = self.reset()
            return obs, *self.nothing(), infos
        return super().step(actions)


@unseen("vector_env", broken=True, mode=NEXT_STEP, singles=LIMITS)
class CompletionOrder(SyncVectorEnv):
    """Three corridors in a pool, some of which take longer now and then.

    Wrong: the results of a step are put together in the order in which the rows were ready.
    """

    def __init__(self) -> None:
        super().__init__(LIMITS, autoreset_mode=NEXT_STEP)
        self.count = 0

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Reset:
        self.count = 0
        return super().reset(seed=seed, options=options)

    def step(self, actions: Any) -> Step:
        self.count += 1
        obs, rewards, terminations, truncations, infos = super().step(actions)
        ready = sorted(range(3), key=lambda i: (self.count * 7 + 5 * i) % 11)
        flags = terminations[ready], truncations[ready]
        order = {key: value[ready] for key, value in infos.items()}
        return obs[ready], rewards[ready], *flags, order
