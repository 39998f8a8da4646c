"""Correct VectorEnvs that simulate all rows at once, and reset them in the next step or never."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from conformance.specimens.registry import unseen
from conformance.specimens.unseen.vector_parts import (
    DISABLED,
    NEXT_STEP,
    NativeVectorEnv,
    Reset,
    Step,
)


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
