"""A wrapper of SB3's kind, to derive others from."""

from __future__ import annotations

from typing import Any

import pytest

vec_envs: Any = pytest.importorskip("stable_baselines3.common.vec_env")


class HandsOn(vec_envs.VecEnvWrapper):  # type: ignore[misc]
    """Hands everything on as it is."""

    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> Any:
        return self.venv.step_wait()
