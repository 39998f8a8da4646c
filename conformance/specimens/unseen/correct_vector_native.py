"""Correct VectorEnvs that simulate all rows at once, and reset them in the next step or never."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding

from conformance.specimens.registry import unseen
from conformance.specimens.unseen.vector_parts import (
    DISABLED,
    NEXT_STEP,
    NativeVectorEnv,
    Reset,
    Step,
)


@unseen("vector_env", mode=NEXT_STEP)
class OwnLimits(NativeVectorEnv):
    """Four rows whose episodes have 1, 2, 4 and 7 steps, by design; each draws for itself."""

    limits = np.array([1, 2, 4, 7])

    def __init__(self) -> None:
        super().__init__(4, spaces.Box(0, 10, (2,), np.float32), spaces.Discrete(3), NEXT_STEP)
        self.dice = [np.random.default_rng() for _ in range(4)]
        self.steps, self.levels = np.zeros(4, np.int64), np.zeros(4)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        super().reset(seed=seed)
        if seed is not None:
            self.dice = [np.random.default_rng(seed + i) for i in range(4)]
        self.steps[:] = 0
        self.levels = np.array([dice.random() for dice in self.dice])
        return self.look(), {"limit": self.limits.copy(), "_limit": np.ones(4, bool)}

    def look(self) -> Any:
        """Return how far each is, and its level."""
        return np.stack([self.steps, self.levels], axis=1).astype(np.float32)

    def step(self, actions: Any) -> Step:
        due = self.steps >= self.limits
        drawn = np.array([dice.random() for dice in self.dice])
        self.steps = np.where(due, 0, self.steps + 1)
        self.levels = np.where(due, drawn, np.minimum(self.levels + actions, 10))
        infos = {"limit": self.limits.copy(), "_limit": due} if due.any() else {}
        rewards = np.where(due, 0.0, self.levels)
        return self.look(), rewards, np.zeros(4, bool), self.steps >= self.limits, infos


@unseen("vector_env", mode=NEXT_STEP)
class FlatReward(NativeVectorEnv):
    """Three gliders that earn exactly 1 for each step in the air, and come down for good."""

    def __init__(self) -> None:
        sky = spaces.Box(0, 200, (1,), np.float64)
        super().__init__(3, sky, spaces.Box(-1, 1, (1,), np.float32), NEXT_STEP)
        self.heights, self.down = np.zeros((3, 1)), np.zeros(3, bool)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        super().reset(seed=seed)
        self.heights, self.down = self.np_random.uniform(5, 10, (3, 1)), np.zeros(3, bool)
        return self.heights.copy(), {}

    def step(self, actions: Any) -> Step:
        due = self.down
        sunk = np.clip(self.heights + np.asarray(actions, np.float64) - 1, 0, 200)
        fresh = self.np_random.uniform(5, 10, (3, 1))
        self.heights = np.where(due[:, None], fresh, sunk)
        self.down = (self.heights[:, 0] == 0) & ~due
        return self.heights.copy(), (~due).astype(np.float64), self.down.copy(), due & False, {}


@unseen("vector_env", mode=NEXT_STEP)
class OneStepThenReset(NativeVectorEnv):
    """Three slot machines with episodes of one step: each second step is one that resets."""

    def __init__(self) -> None:
        super().__init__(3, spaces.Discrete(10), spaces.Discrete(2), NEXT_STEP)
        self.due = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        super().reset(seed=seed)
        self.due = False
        return self.np_random.integers(0, 10, 3), {}

    def step(self, actions: Any) -> Step:
        rewards, terminations, truncations = self.nothing()
        reels = self.np_random.integers(0, 10, 3)
        if not self.due:
            rewards, terminations = 1.0 * (reels == 7 * np.asarray(actions)), ~terminations
        self.due = not self.due
        return reels, rewards, terminations, truncations, {}


@unseen("vector_env", mode=NEXT_STEP)
class LongHaul(NativeVectorEnv):
    """Two ships whose episodes do not end within any patience."""

    def __init__(self) -> None:
        super().__init__(2, spaces.Box(-1, 1, (2,), np.float32), spaces.Discrete(4), NEXT_STEP)
        self.courses = np.zeros(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        super().reset(seed=seed)
        self.courses = self.np_random.uniform(0, 6, 2)
        return self.look(), {}

    def look(self) -> Any:
        """Return the courses as points on a circle."""
        return np.stack([np.cos(self.courses), np.sin(self.courses)], 1).astype(np.float32)

    def step(self, actions: Any) -> Step:
        self.courses = self.courses + 0.1 * actions + self.np_random.normal(0, 0.01, 2)
        _, terminations, truncations = self.nothing()
        return self.look(), np.cos(self.courses), terminations, truncations, {}


@unseen("vector_env", mode=NEXT_STEP)
class BinaryLamps(NativeVectorEnv):
    """Four boards of five lamps (MultiBinary), each with a clock; both are observed, in a tuple.

    An episode terminates when all lamps are lit, and is truncated after nine steps; both may be.
    The observations are read-only.
    """

    def __init__(self) -> None:
        board = spaces.Tuple((spaces.MultiBinary(5), spaces.Discrete(10)))
        super().__init__(4, board, spaces.MultiBinary(5), NEXT_STEP)
        self.lit, self.clock = np.zeros((4, 5), np.int8), np.zeros(4, np.int64)
        self.ended = np.zeros(4, bool)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        super().reset(seed=seed)
        self.lit = self.np_random.integers(0, 2, (4, 5), np.int8)
        self.clock, self.ended = np.zeros(4, np.int64), np.zeros(4, bool)
        return self.look(), {}

    def look(self) -> Any:
        """Return copies that nobody can write to."""
        lit, clock = self.lit.copy(), self.clock.copy()
        lit.flags.writeable = clock.flags.writeable = False
        return lit, clock

    def step(self, actions: Any) -> Step:
        due, fresh = self.ended, self.np_random.integers(0, 2, (4, 5), np.int8)
        self.lit = np.where(due[:, None], fresh, self.lit ^ actions).astype(np.int8)
        self.clock = np.where(due, 0, self.clock + 1)
        terminations = self.lit.all(axis=1) & ~due
        truncations = (self.clock >= 9) & ~due
        self.ended = terminations | truncations
        rewards = np.where(due, 0.0, self.lit.sum(axis=1))
        return self.look(), rewards, terminations, truncations, {}


class Furnace:
    """A simulator that knows nothing of reinforcement learning."""

    def __init__(self) -> None:
        self.glow = np.zeros(3)
        self.maker = "Furnace & Sons"

    def heat(self, coals: Any) -> Any:
        """Return how hot each is."""
        self.glow = np.maximum(self.glow + coals - 1, 0)
        return self.glow.copy()


@unseen("vector_env", mode=NEXT_STEP)
class ForwardingVector(NativeVectorEnv):
    """Three furnaces in a simulator of their own, to which unknown attributes are forwarded."""

    def __init__(self) -> None:
        self.furnace = Furnace()
        glow = spaces.Box(0, 90, (1,), np.float32)
        super().__init__(3, glow, spaces.Discrete(5, start=0), NEXT_STEP)
        self.ended = np.zeros(3, bool)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "furnace":
            raise AttributeError(name)
        return getattr(self.furnace, name)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        super().reset(seed=seed)
        self.furnace.glow = self.np_random.uniform(0, 3, 3)
        self.ended = np.zeros(3, bool)
        return self.furnace.glow[:, None].astype(np.float32), {}

    def step(self, actions: Any) -> Step:
        due, fresh = self.ended, self.np_random.uniform(0, 3, 3)
        self.furnace.glow = np.where(due, fresh, self.furnace.heat(actions))
        glow = self.furnace.glow
        self.ended = (glow > 12) & ~due
        rewards = np.where(due, 0.0, glow)
        infos = {"glow": glow.copy(), "_glow": np.ones(3, bool)}
        return glow[:, None].astype(np.float32), rewards, self.ended.copy(), due & False, infos


@unseen("vector_env", mode=DISABLED)
class Clockwork(NativeVectorEnv):
    """Four clocks in which nothing is drawn, each with as many hours as its place plus three."""

    def __init__(self) -> None:
        super().__init__(4, spaces.MultiDiscrete([9, 4]), spaces.Discrete(3), DISABLED)
        self.hours, self.wound = np.zeros(4, np.int64), np.zeros(4, np.int64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        super().reset(seed=seed)
        mask = self.masked(options)
        self.hours[mask], self.wound[mask] = 0, 3
        return np.stack([self.hours, self.wound], axis=1), {}

    def step(self, actions: Any) -> Step:
        if ((self.hours >= np.arange(3, 7)) | (self.wound <= 0)).any():
            raise ValueError("A clock that has stopped is to be reset first")
        self.hours = self.hours + 1
        self.wound = np.clip(self.wound + np.asarray(actions) - 1, 0, 3)
        stopped, struck = self.wound <= 0, self.hours >= np.arange(3, 7)
        obs = np.stack([self.hours, self.wound], axis=1)
        return obs, self.wound * 0.5, stopped, struck, {}


@unseen("vector_env", mode=DISABLED)
class ThickWalls(NativeVectorEnv):
    """Two moles in a narrow tunnel, where most actions change nothing; starts are drawn by row.

    A masked reset with a seed seeds the rows of the mask alone.
    """

    tunnel = ((0, 0), (0, 1), (1, 1), (2, 1), (2, 2), (2, 3))
    ways = ((0, 1), (1, 0), (0, -1), (-1, 0))

    def __init__(self) -> None:
        super().__init__(2, spaces.Box(0, 3, (2,), np.int8), spaces.Discrete(4), DISABLED)
        self.dice = [seeding.np_random()[0] for _ in range(2)]
        self.cells, self.ended = [(0, 0), (0, 0)], np.zeros(2, bool)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        super().reset(seed=seed)
        for i in np.flatnonzero(self.masked(options)):
            if seed is not None:
                self.dice[i] = seeding.np_random(seed + int(i))[0]
            self.cells[i] = self.tunnel[self.dice[i].integers(0, 3)]
            self.ended[i] = False
        return np.array(self.cells, np.int8), {}

    def step(self, actions: Any) -> Step:
        if self.ended.any():
            raise ValueError("Reset the moles that are out first")
        for i, action in enumerate(actions):
            down, right = self.ways[action]
            beyond = self.cells[i][0] + down, self.cells[i][1] + right
            self.cells[i] = beyond if beyond in self.tunnel else self.cells[i]
        self.ended = np.array([cell == (2, 3) for cell in self.cells])
        rewards = self.ended.astype(np.float64)
        return np.array(self.cells, np.int8), rewards, self.ended.copy(), np.zeros(2, bool), {}


@unseen("vector_env", mode=DISABLED)
class OddInfos(NativeVectorEnv):
    """Three rows whose infos hold objects, NaN, nested masks, and what belongs to no row.

    Each key has its mask, except those that hold for all rows: `every` has no mask, since every row
    has it, and `engine` is one text for all. A reset tells the keys of the rows that it resets.
    """

    def __init__(self) -> None:
        super().__init__(3, spaces.Box(0, 20, (1,), np.float32), spaces.Discrete(2), DISABLED)
        self.left, self.ended = np.zeros((3, 1), np.float32), np.zeros(3, bool)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        super().reset(seed=seed)
        mask = self.masked(options).copy()
        self.left[mask] = self.np_random.integers(2, 9, (mask.sum(), 1))
        self.ended[mask] = False
        names = np.full(3, None, object)
        names[mask] = "fresh"
        return self.left.copy(), {"name": names, "_name": mask, "engine": "v2"}

    def step(self, actions: Any) -> Step:
        if self.ended.any():
            raise ValueError("Reset the rows that are empty first")
        self.left -= 1
        self.ended = self.left[:, 0] <= 0
        odd = self.left[:, 0] % 2 == 1
        lists = np.full(3, None, object)
        for i in np.flatnonzero(odd):
            lists[i] = [int(i)] * int(self.left[i, 0])
        infos: dict[str, Any] = {"engine": "v2", "every": self.left[:, 0].copy()}
        if odd.any():
            deep = {"nan": np.where(odd, np.nan, 0.0), "_nan": odd.copy()}
            infos |= {"list": lists, "_list": odd.copy(), "deep": deep, "_deep": odd.copy()}
        rewards = np.asarray(actions, np.float64)
        return self.left.copy(), rewards, self.ended.copy(), np.zeros(3, bool), infos
