"""An environment whose every answer says which call it answers, and that fails on command."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

HOWS = ("raise", "base", "hang", "die")


class ArmedError(Exception):
    """What an armed environment raises."""


class ArmedBaseError(BaseException):
    """And what no `except Exception` catches."""


class Echoing(gym.Env[Any, Any]):
    """Its observation is its row, seed, episode, time, and mark.

    A reset with a seed forgets all that was before. Armed, its next step fails in a way of `HOWS`;
    one that hangs goes on when the file `gate` is there.
    """

    observation_space = spaces.Box(-np.inf, np.inf, (5,), np.float32)
    action_space = spaces.Discrete(4)
    metadata = {"render_modes": ["rgb_array"], "render_fps": 7}
    render_mode = "rgb_array"

    def __init__(self, row: int, gate: str = "") -> None:
        self.row, self.gate = row, gate
        self.used_seed = self.episode = self.time = self.mark = 0
        self.armed = ""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.episode += 1
        self.time = 0
        if seed is not None:
            self.used_seed, self.episode, self.mark, self.armed = seed, 0, 0, ""
        return self._observation(), {"first": self.episode, "x": (options or {}).get("x", -1)}

    def step(self, action: Any) -> Any:
        armed, self.armed = self.armed, ""
        self._fail(armed)
        self.time += 1
        ended = self.time == 2 + self.row % 3
        cut = ended and self.episode % 2 == 1
        reward = 100.0 * self.episode + self.time
        return self._observation(), reward, ended and not cut, cut, {"taken": int(action)}

    def render(self) -> Any:
        return np.full((2, 2, 3), self.row + 10 * self.time, np.uint8)

    def echo(self, number: int) -> tuple[int, int]:
        return self.row, number

    def arm(self, how: str) -> None:
        self.armed = how

    def pid(self) -> int:
        return os.getpid()

    def _fail(self, how: str) -> None:
        if how == "raise":
            raise ArmedError(f"row {self.row}")
        if how == "base":
            raise ArmedBaseError(f"row {self.row}")
        if how == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        while how == "hang" and not Path(self.gate).exists():
            time.sleep(0.001)

    def _observation(self) -> Any:
        values = (self.row, self.used_seed, self.episode, self.time, self.mark)
        return np.array(values, np.float32)


class MakeEchoing:
    """Makes one row."""

    def __init__(self, row: int, gate: str = "") -> None:
        self.row, self.gate = row, gate

    def __call__(self) -> Echoing:
        return Echoing(self.row, self.gate)
