"""VecEnvs as users write them: natively vectorised, and without SB3's base class."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np


class CountingVecEnv:
    """Counts to each row's limit, which truncates; the 4-tuple, a list of infos, and no base.

    Args:
        num_envs: The number of rows; row i takes i + 2 steps.
        forget: Info keys that it leaves out at endings.
    """

    def __init__(self, num_envs: int = 2, forget: tuple[str, ...] = ()) -> None:
        self.num_envs = num_envs
        self.observation_space = gym.spaces.Box(0, 99, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.forget = forget
        self.count = np.zeros(num_envs, int)
        self.start = 0
        self.closed = False

    def seed(self, seed: int) -> None:
        self.start = seed

    def reset(self) -> Any:
        self.count[:] = self.start
        return self._obs()

    def step(self, actions: Any) -> Any:
        assert isinstance(actions, np.ndarray)
        self.count += 1
        limits = self.start + np.arange(self.num_envs) + 2
        dones = self.count >= limits
        infos: list[dict[str, Any]] = [{"action": int(action)} for action in actions]
        for i in np.flatnonzero(dones):
            ending = {"TimeLimit.truncated": True, "terminal_observation": self._obs()[i]}
            infos[i] |= {key: ending[key] for key in ending if key not in self.forget}
        self.count[dones] = self.start
        return self._obs(), np.ones(self.num_envs), dones, infos

    def close(self) -> None:
        self.closed = True

    def _obs(self) -> Any:
        return self.count.astype(np.float32)[:, None]


class AsyncCountingVecEnv(CountingVecEnv):
    """The same by `step_async` and `step_wait`, and no `step`."""

    step: Any = property()  # as if it were not there

    def step_async(self, actions: Any) -> None:
        self.actions = actions

    def step_wait(self) -> Any:
        return CountingVecEnv.step(self, self.actions)
