"""Wrappers of SB3's kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.to_sb3.driving import cast

FINAL = "terminal_observation"
vec_envs: Any = pytest.importorskip("stable_baselines3.common.vec_env")


class HandsOn(vec_envs.VecEnvWrapper):  # type: ignore[misc]
    """Hands everything on as it is; others are derived from it."""

    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> Any:
        return self.venv.step_wait()


class Cast(HandsOn):
    """Changes observations and rewards, and leaves the space as it is."""

    def __init__(self, venv: Any, dtype: Any = np.float64, rewards: Any = np.float32) -> None:
        super().__init__(venv)
        self.dtype, self.rewards = dtype, rewards

    def reset(self) -> Any:
        return cast(self.venv.reset(), self.dtype)

    def step_wait(self) -> Any:
        obs, rewards, dones, infos = self.venv.step_wait()
        for info in infos:
            if FINAL in info:
                info[FINAL] = cast(info[FINAL], self.dtype)
        return cast(obs, self.dtype), rewards.astype(self.rewards), dones, infos
