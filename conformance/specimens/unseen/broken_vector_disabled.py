"""Broken VectorEnvs that leave the resets to the caller, by a mask."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces

from conformance.specimens.unseen.entry import broken
from conformance.specimens.unseen.rows import Corridor
from conformance.specimens.unseen.vector_parts import (
    DISABLED,
    NativeVectorEnv,
    Reset,
    RowsVectorEnv,
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


@broken(
    "VectorEnv",
    mode=DISABLED,
    breaks="reset with a reset_mask resets the rows where the mask is true, and no others",
    told=True,
    why="the rows that ended keep their observations, and other rows jump without a flag",
)
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


@broken(
    "VectorEnv",
    mode=DISABLED,
    breaks="a reset with a reset_mask returns the observations of all rows",
    told=True,
    why="the shape is wrong whenever the mask is not true everywhere",
)
class OnlyMaskedRows(Balloons):
    """Four balloons.

    Wrong: a masked reset returns the observations of the rows that it reset, without the others.
    """

    def __init__(self) -> None:
        super().__init__(4)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        obs, infos = super().reset(seed=seed, options=options)
        return obs[self.masked(options)], infos


@broken(
    "VectorEnv",
    mode=DISABLED,
    breaks="a masked reset begins the episodes of its rows anew, their time limits included",
    told=True,
    why="with a seed and a full mask it is followed by something else than a reset with that seed",
)
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


@broken(
    "VectorEnv",
    mode=DISABLED,
    breaks="a reset without a seed goes on with the generator",
    told=True,
    why="every masked reset of a row shows the same, where full resets without a seed differ",
)
class MaskedResetReseeds(Balloons):
    """Three balloons.

    Wrong: a masked reset without a seed seeds the generator with the last seed again.
    """

    def __init__(self) -> None:
        super().__init__(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        if seed is None and options is not None and "reset_mask" in options:
            seed = self.np_random_seed
        return super().reset(seed=seed, options=options)


@broken(
    "VectorEnv",
    mode=DISABLED,
    breaks="a second close does nothing",
    told=True,
    why="it raises AttributeError",
    warning="close_idempotent",
)
class SecondCloseFails(Balloons):
    """Two balloons.

    Wrong: close is overridden instead of close_extras, and deletes what it deletes each time.
    """

    def __init__(self) -> None:
        super().__init__(2, limit=20)
        self.pump = object()

    def close(self, **kwargs: Any) -> None:
        del self.pump
        self.closed = True


@broken(
    "VectorEnv",
    mode=DISABLED,
    breaks="where a row ends, its observation is the last one of the episode, until it is reset",
    told=False,
    why="an observation is shown; only the row knows that it is the first of another episode",
    singles=LIMITS,
)
class SilentAutoreset(RowsVectorEnv):
    """Three corridors.

    Wrong: each is reset within the step that ends its episode, by code that was left in when the
    mode was changed; the caller's own reset comes on top.
    """

    def __init__(self) -> None:
        super().__init__(LIMITS, DISABLED)

    def step_row(self, i: int, action: Any, infos: dict[str, Any]) -> tuple[float, bool, bool]:
        reward, terminated, truncated = super().step_row(i, action, infos)
        if terminated or truncated:
            self.last[i], _ = self.envs[i].reset()
        return reward, terminated, truncated
