"""Correct VecEnvs that simulate all rows at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from conformance.specimens.registry import unseen
from conformance.specimens.unseen.vec_parts import NativeVecEnv, Step


@unseen("vec_env")
class SharedDice(NativeVecEnv):
    """Three games of dice, with one generator for all rows, which seed(s) seeds with s."""

    def __init__(self) -> None:
        super().__init__(3, spaces.Box(0, 40, (1,), np.int64), spaces.Discrete(2))
        self.generator = np.random.default_rng()
        self.sums = np.zeros((3, 1), np.int64)

    def reset(self) -> Any:
        if self._seeds[0] is not None:
            self.generator = np.random.default_rng(self._seeds[0])
        self._reset_seeds()
        self._reset_options()
        self.sums = self.generator.integers(1, 7, (3, 1))
        return self.sums.copy()

    def step_wait(self) -> Step:
        faces = self.generator.integers(1, 7, 3)
        thrown = self.actions == 1
        self.sums[:, 0] += np.where(thrown, faces, 0)
        lost = self.sums[:, 0] > 21
        dones = lost | ~thrown
        rewards = np.where(dones & ~lost, self.sums[:, 0], 0).astype(np.float32)
        infos = self.infos()
        for i in np.flatnonzero(dones):
            infos[i]["terminal_observation"] = self.sums[i].copy()
            infos[i]["is_success"] = not lost[i]
            self.sums[i] = self.generator.integers(1, 7)
        return self.sums.copy(), rewards, dones, infos


@unseen("vec_env")
class Marathon(NativeVecEnv):
    """Two runners whose episodes are truncated after a million steps."""

    def __init__(self) -> None:
        super().__init__(2, spaces.Box(0, 1, (1,), np.float32), spaces.Discrete(2))
        self.breath, self.steps = np.ones((2, 1)), 0

    def reset(self) -> Any:
        self.take_seeds()
        return self.begin()

    def begin(self) -> Any:
        """Let both begin anew."""
        self.breath, self.steps = np.stack([dice.uniform(0, 1, 1) for dice in self.dice]), 0
        return self.breath.astype(np.float32)

    def step_wait(self) -> Step:
        self.breath = np.where(self.actions[:, None] == 1, self.breath * 0.9, self.breath + 0.1)
        self.breath = np.clip(self.breath, 0, 1)
        self.steps += 1
        dones, obs = np.full(2, self.steps >= 1_000_000), self.breath.astype(np.float32)
        rewards, infos = self.actions.astype(np.float32), self.infos(dones)
        if dones.all():
            for info, last in zip(infos, obs, strict=True):
                info["terminal_observation"] = last.copy()
            obs = self.begin()
        return obs, rewards, dones, infos
