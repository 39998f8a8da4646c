"""Broken VectorEnvs that simulate all rows at once, in the modes that reset by themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from conformance.specimens.registry import unseen
from conformance.specimens.unseen.vector_parts import (
    NEXT_STEP,
    SAME_STEP,
    NativeVectorEnv,
    Reset,
    Step,
)

WAYS = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)])


class Walkers(NativeVectorEnv):
    """Walkers on a line, each until it is five away from where the line begins."""

    def __init__(self, num_envs: int, limit: int = 1000) -> None:
        line = spaces.Box(-20, 20, (2,), np.float32)
        super().__init__(num_envs, line, spaces.Discrete(3), NEXT_STEP)
        self.at, self.winds = np.zeros(num_envs, np.int64), np.zeros(num_envs, np.int64)
        self.steps = np.zeros(num_envs, np.int64)
        self.ended = np.zeros(num_envs, bool)
        self.limit = limit

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        super().reset(seed=seed)
        self.begin(np.ones(self.num_envs, bool))
        self.ended[:] = False
        return self.look(), {}

    def begin(self, rows: Any) -> None:
        """Let some of them begin anew."""
        self.at[rows] = self.np_random.integers(-2, 3, rows.sum())
        self.winds[rows] = 0
        self.steps[rows] = 0

    def walk(self, actions: Any) -> None:
        """Move those whose episode is not over."""
        going = ~self.ended
        self.at[going] += (actions - 1 + self.winds)[going]
        self.winds[going] = self.np_random.integers(-1, 2, going.sum())
        self.steps[going] += 1

    def look(self) -> Any:
        """Return what is observed."""
        return np.stack([self.at, self.winds], axis=1).astype(np.float32)


@unseen("vector_env", broken=True, mode=NEXT_STEP)
class TruncatedRowsGoOn(Walkers):
    """Three walkers with a time limit.

    Wrong: only the rows that terminated are reset; truncated ones walk on.
    """

    def __init__(self) -> None:
        super().__init__(3, limit=7)

    def step(self, actions: Any) -> Step:
        resetting = self.ended.copy()
        self.walk(actions)
        self.begin(resetting)
        rewards = np.where(resetting, 0, np.abs(self.at)).astype(np.float64)
        self.ended = (np.abs(self.at) >= 5) & ~resetting
        truncations = (self.steps >= self.limit) & ~resetting
        return self.look(), rewards, self.ended.copy(), truncations, {}


@unseen("vector_env", broken=True, mode=NEXT_STEP)
class SeedZeroIsNone(Walkers):
    """Three walkers in the wind.

    Wrong: `if seed:` takes the seed 0 for no seed.
    """

    def __init__(self) -> None:
        super().__init__(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        return super().reset(seed=seed if seed else None)

    def step(self, actions: Any) -> Step:
        resetting = self.ended.copy()
        self.walk(actions)
        self.begin(resetting)
        self.ended = (np.abs(self.at) >= 5) & ~resetting
        rewards = np.where(resetting, 0, self.at).astype(np.float64)
        return self.look(), rewards, self.ended.copy(), np.zeros(3, bool), {}


@unseen("vector_env", broken=True, mode=NEXT_STEP)
class DieWithoutStart(NativeVectorEnv):
    """Four dice that are thrown until the sum is guessed high enough; a face is from 1 to 6.

    Wrong: the batched space is written by hand, as MultiDiscrete([6, 6, 6, 6]), which is 0 to 5.
    """

    def __init__(self) -> None:
        super().__init__(4, spaces.Discrete(6, start=1), spaces.Discrete(2), NEXT_STEP)
        self.observation_space = spaces.MultiDiscrete([6] * 4)
        self.sums = np.zeros(4, np.int64)
        self.ended = np.zeros(4, bool)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        super().reset(seed=seed)
        faces = self.np_random.integers(1, 7, 4)
        self.sums, self.ended = faces.copy(), np.zeros(4, bool)
        return faces, {}

    def step(self, actions: Any) -> Step:
        fresh, faces = self.ended, self.np_random.integers(1, 7, 4)
        self.sums = np.where(fresh, faces, self.sums + faces)
        self.ended = (self.sums > 15) & ~fresh
        rewards = np.where(fresh, 0.0, actions * 1.0)
        sums = {"sum": self.sums.copy(), "_sum": np.ones(4, bool)}
        return faces, rewards, self.ended.copy(), np.zeros(4, bool), sums


@unseen("vector_env", broken=True, mode=SAME_STEP)
class LingeringFinal(NativeVectorEnv):
    """Four tanks that leak and can be filled (MultiBinary: one valve each for in and out).

    Wrong: the final observations are noted in an array and a mask that are never cleared but by a
    reset, and a copy of both goes into the infos of every step.
    """

    def __init__(self) -> None:
        tank = spaces.Box(0, 100, (1,), np.float32)
        super().__init__(4, tank, spaces.MultiBinary(2), SAME_STEP)
        self.levels = np.zeros((4, 1), np.float32)
        self.finals, self.mask = np.full(4, None, object), np.zeros(4, bool)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        super().reset(seed=seed)
        self.levels = self.np_random.uniform(10, 20, (4, 1)).astype(np.float32)
        self.finals, self.mask = np.full(4, None, object), np.zeros(4, bool)
        return self.levels.copy(), {}

    def step(self, actions: Any) -> Step:
        change = 5 * actions[:, :1] - 8.0 * actions[:, 1:] - 1
        self.levels = np.clip(self.levels + change, 0, 100).astype(np.float32)
        rewards, ended = self.levels[:, 0].astype(np.float64), self.levels[:, 0] <= 0
        for i in np.flatnonzero(ended):
            self.finals[i], self.mask[i] = self.levels[i].copy(), True
        filled = self.np_random.uniform(10, 20, (ended.sum(), 1))
        self.levels[ended] = filled
        infos: dict[str, Any] = {"final_obs": self.finals.copy(), "_final_obs": self.mask.copy()}
        infos |= {"final_info": {}, "_final_info": self.mask.copy()}
        return self.levels.copy(), rewards, ended, np.zeros(4, bool), infos


@unseen("vector_env", broken=True, mode=SAME_STEP)
class SharedInfoArray(NativeVectorEnv):
    """Three springs with a torque each (Box), that snap when they are stretched too far.

    Wrong: the energies in the infos are the simulator's own array.
    """

    def __init__(self) -> None:
        super().__init__(
            3, spaces.Box(-9, 9, (2,), np.float64), spaces.Box(-2, 2, (1,), np.float32), SAME_STEP
        )
        self.springs, self.energy = np.zeros((3, 2)), np.zeros(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        super().reset(seed=seed)
        self.springs = self.np_random.uniform(-0.5, 0.5, (3, 2))
        self.energy[:] = (self.springs**2).sum(axis=1)
        return self.springs.copy(), {"energy": self.energy}

    def step(self, actions: Any) -> Step:
        force = np.asarray(actions, np.float64)[:, 0] - 0.5 * self.springs[:, 0]
        speeds = np.clip(self.springs[:, 1] + 0.4 * force, -3, 3)
        self.springs = np.stack([self.springs[:, 0] + speeds, speeds], axis=1)
        ended = np.abs(self.springs[:, 0]) > 2
        rewards = -np.abs(self.springs[:, 0])
        infos: dict[str, Any] = {}
        if ended.any():
            finals = np.full(3, None, object)
            for i in np.flatnonzero(ended):
                finals[i] = self.springs[i].copy()
            told = {"energy": (self.springs**2).sum(axis=1), "_energy": ended.copy()}
            infos = {"final_obs": finals, "_final_obs": ended.copy()}
            infos |= {"final_info": told, "_final_info": ended.copy()}
        self.springs[ended] = self.np_random.uniform(-0.5, 0.5, (ended.sum(), 2))
        self.energy[:] = (self.springs**2).sum(axis=1)
        infos["energy"] = self.energy
        return self.springs.copy(), rewards, ended, np.zeros(3, bool), infos
