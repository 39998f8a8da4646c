"""An environment whose every answer says which call it answers, and that fails on command."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from tests.interrupts import Counting

HOWS = ("raise", "base", "hang", "die")


class ArmedError(Exception):
    """What an armed environment raises."""


class ArmedBaseError(BaseException):
    """And what no `except Exception` catches."""


class Echoing(Counting):
    """Its observation says its mark, too.

    A reset with a seed forgets all that was before. Armed, its next step fails in a way of `HOWS`;
    one that hangs goes on when the file `gate` is there.
    """

    observation_space = spaces.Box(-np.inf, np.inf, (5,), np.float32)

    def __init__(self, row: int, gate: str = "") -> None:
        super().__init__(row)
        self.gate, self.armed = gate, ""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        if seed is not None:
            self.mark, self.armed = 0, ""
        observation, info = super().reset(seed=seed)
        return observation, info | {"x": (options or {}).get("x", -1)}

    def step(self, action: Any) -> Any:
        armed, self.armed = self.armed, ""
        self._fail(armed)
        return super().step(action)

    def render(self) -> Any:
        return super().render() + np.uint8(10 * self.time)

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

    def _obs(self) -> Any:
        return np.append(super()._obs(), np.float32(self.mark))


class MakeEchoing:
    """Makes one row."""

    def __init__(self, row: int, gate: str = "") -> None:
        self.row, self.gate = row, gate

    def __call__(self) -> Echoing:
        return Echoing(self.row, self.gate)
