"""Broken VectorEnvs that leave the resets to the caller, by a mask."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces

from conformance.specimens.registry import unseen
from conformance.specimens.unseen.rows import Corridor
from conformance.specimens.unseen.vector_parts import (
    DISABLED,
    NativeVectorEnv,
    Reset,
    Step,
)

LIMITS = tuple(partial(Corridor, 6, limit) for limit in (4, 6, 8))


class Balloons(NativeVectorEnv):
    """Balloons that are pumped up, and burst (terminated) or are left at the limit (truncated)."""

    def __init__(self, num_envs: int, limit: int = 1000) -> None:
        air = spaces.Box(0, 30, (2,), np.float32)
        super().__init__(num_envs, air, spaces.Discrete(2), DISABLED)
        self.air = np.zeros((num_envs, 2), np.float32)
        self.steps = np.zeros(num_envs, np.int64)
        self.ended = np.zeros(num_envs, bool)
        self.limit = limit

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        super().reset(seed=seed)
        mask = self.masked(options)
        self.begin(mask)
        return self.air.copy(), {}

    def begin(self, rows: Any) -> None:
        """Take new balloons for some rows; the second number is what they can hold."""
        self.air[rows, 0] = 0
        self.air[rows, 1] = self.np_random.uniform(2, 9, rows.sum())
        self.steps[rows] = 0
        self.ended[rows] = False

    def step(self, actions: Any) -> Step:
        if self.ended.any():
            raise ValueError("Reset the rows that have ended first")
        self.air[:, 0] += actions * self.np_random.uniform(0.5, 2, self.num_envs)
        self.air[:, 0] = np.minimum(self.air[:, 0], 30)
        self.steps += 1
        burst, late = self.air[:, 0] > self.air[:, 1], self.steps >= self.limit
        self.ended = burst | late
        rewards = np.where(burst, -1.0, actions * 0.5)
        return self.air.copy(), rewards, burst, late, {}


@unseen("vector_env", broken=True, mode=DISABLED)
class MaskAsIndices(Balloons):
    """Five balloons.

    Wrong: the mask is cast to integers before it is used as an index, and so resets rows 0 and 1.
    """

    def __init__(self) -> None:
        super().__init__(5)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        mask = self.masked(options)
        if mask.all():
            return super().reset(seed=seed)
        super(Balloons, self).reset(seed=seed)
        rows = mask.astype(np.int64)
        self.air[rows, 0] = 0
        self.air[rows, 1] = self.np_random.uniform(2, 9)
        self.steps[rows] = 0
        self.ended[mask] = False
        return self.air.copy(), {}


@unseen("vector_env", broken=True, mode=DISABLED)
class OnlyMaskedRows(Balloons):
    """Four balloons.

    Wrong: a masked reset returns the observations of the rows that it reset, without the others.
    """

    def __init__(self) -> None:
        super().__init__(4)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        obs, infos = super().reset(seed=seed, options=options)
        return obs[self.masked(options)], infos


@unseen("vector_env", broken=True, mode=DISABLED)
class ClockSurvivesMask(Balloons):
    """Three balloons with a time limit.

    Wrong: a masked reset leaves the number of steps as it is; a row that was truncated once is
    truncated at the first step of each later episode.
    """

    def __init__(self) -> None:
        super().__init__(3, limit=10)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        before = self.steps.copy()
        obs, infos = super().reset(seed=seed, options=options)
        if options is not None and "reset_mask" in options:
            self.steps = before
        return obs, infos
