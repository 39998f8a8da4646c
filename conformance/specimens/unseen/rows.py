"""Single environments, for those of the vectorised ones that step such row by row."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

Floats = npt.NDArray[np.float32]
Pixels = npt.NDArray[np.uint8]


class Corridor(gym.Env[Floats, np.int64]):
    """A walk to the right end of a corridor, with a wind that may push one cell further.

    The episode terminates at the end, and is truncated after `limit` steps where there is a limit.
    """

    metadata = {"render_modes": []}

    def __init__(self, length: int = 5, limit: int | None = None) -> None:
        self.observation_space = spaces.Box(0, 100, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.length, self.limit = length, limit
        self.cell = self.clock = self.wind = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(0, 3))
        self.cell = int((options or {}).get("start", drawn))
        self.wind = int(self.np_random.integers(0, 2))
        self.clock = 0
        return self._look(), {"start": self.cell}

    def step(self, action: np.int64) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        self.cell = max(0, min(self.length, self.cell + 2 * int(action) - 1 + self.wind))
        self.wind = int(self.np_random.integers(0, 2))
        self.clock += 1
        truncated = self.limit is not None and self.clock >= self.limit
        info = {"cell": self.cell, "clock": self.clock}
        reward = 0.25 * self.cell - 0.5
        return self._look(), reward, self.cell >= self.length, truncated, info

    def where(self) -> int:
        """Return the cell."""
        return self.cell

    def _look(self) -> Floats:
        return np.array([self.cell, self.wind], np.float32)


class Swing(gym.Env[Floats, Floats]):
    """A pendulum under a noisy torque; episodes are truncated after `limit` steps."""

    metadata = {"render_modes": []}

    def __init__(self, limit: int = 9) -> None:
        high = np.array([1, 1, 8], np.float32)
        self.observation_space = spaces.Box(-high, high, dtype=np.float32)
        self.action_space = spaces.Box(-1, 1, (1,), np.float32)
        self.limit = limit
        self.angle = self.speed = 0.0
        self.clock = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        super().reset(seed=seed)
        self.angle, self.speed = (float(x) for x in self.np_random.uniform(-1, 1, 2))
        self.clock = 0
        return self._look(), {"angle": self.angle}

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        torque = 2 * float(action[0]) + float(self.np_random.normal(0, 0.1))
        speed = self.speed + 0.05 * (15 * np.sin(self.angle) + 3 * torque)
        self.speed = float(np.clip(speed, -8, 8))
        self.angle += 0.05 * self.speed
        self.clock += 1
        energy = 0.5 * self.speed**2 + 10 * float(np.cos(self.angle))
        info = {"energy": energy}
        return self._look(), -abs(self.angle), False, self.clock >= self.limit, info

    def _look(self) -> Floats:
        return np.array([np.cos(self.angle), np.sin(self.angle), self.speed], np.float32)


class Camera(gym.Env[Pixels, np.int64]):
    """A bright dot over noise; the episode terminates where the dot leaves the image."""

    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, size: int = 8, render_mode: str | None = None) -> None:
        self.observation_space = spaces.Box(0, 255, (size, size, 3), np.uint8)
        self.action_space = spaces.Discrete(4)
        self.size, self.render_mode = size, render_mode
        self.dot = np.zeros(2, np.int64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Pixels, dict[str, Any]]:
        super().reset(seed=seed)
        self.dot = self.np_random.integers(2, self.size - 2, 2)
        return self._look(), {}

    def step(self, action: np.int64) -> tuple[Pixels, float, bool, bool, dict[str, Any]]:
        ways = ((0, 1), (1, 0), (0, -1), (-1, 0))
        self.dot = self.dot + ways[int(action)]
        out = bool((self.dot < 0).any() or (self.dot >= self.size).any())
        return self._look(), float(self.dot.sum()), out, False, {"dot": self.dot.copy()}

    def render(self) -> Pixels:
        """Return the image without the noise."""
        image = np.zeros((self.size, self.size, 3), np.uint8)
        row, column = np.clip(self.dot, 0, self.size - 1)
        image[row, column] = 255
        return image

    def _look(self) -> Pixels:
        noise = self.np_random.integers(0, 20, (self.size, self.size, 3), dtype=np.uint8)
        return np.maximum(self.render(), noise)


class Weather(gym.Env[dict[str, Any], np.int64]):
    """A day of weather, observed as a dictionary; its infos are nested."""

    metadata = {"render_modes": []}

    def __init__(self, days: int = 6) -> None:
        self.observation_space = spaces.Dict(
            {
                "sky": spaces.Discrete(3),
                "air": spaces.Dict({"warmth": spaces.Box(-40, 50, (), np.float32)}),
                "rain": spaces.MultiBinary(4),
            }
        )
        self.action_space = spaces.Discrete(3)
        self.days = days
        self.day, self.warmth = 0, 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed)
        self.day, self.warmth = 0, float(self.np_random.uniform(0, 20))
        return self._look(), {"station": {"height": int(self.np_random.integers(0, 900))}}

    def step(self, action: np.int64) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        self.day += 1
        self.warmth = float(np.clip(self.warmth + int(action) - 1, -40, 50))
        storm = bool(self.np_random.random() < 0.1)
        info = {"air": {"pressure": 1000 + self.day, "wind": {"gusts": np.arange(2) * self.day}}}
        return self._look(), self.warmth / 10, storm, self.day >= self.days, info

    def _look(self) -> dict[str, Any]:
        return {
            "sky": self.np_random.integers(0, 3),
            "air": {"warmth": np.array(self.warmth, np.float32)},
            "rain": self.np_random.integers(0, 2, 4, dtype=np.int8),
        }


class Letters(gym.Env[Any, np.int64]):
    """A tape of letters that grows; observed as a text, a sequence, or either of two things."""

    metadata = {"render_modes": []}

    def __init__(self, kind: str = "text") -> None:
        self.kind = kind
        self.observation_space = {
            "text": spaces.Text(8, min_length=0, charset="abc"),
            "sequence": spaces.Sequence(spaces.Discrete(3)),
            "either": spaces.OneOf((spaces.Discrete(3), spaces.Box(0, 8, (2,), np.float32))),
        }[kind]
        self.action_space = spaces.Discrete(3)
        self.tape: list[int] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.tape = [int(x) for x in self.np_random.integers(0, 3, self.np_random.integers(1, 4))]
        return self._look(), {"length": len(self.tape)}

    def step(self, action: np.int64) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.tape.append(int(action))
        full = len(self.tape) >= 8
        return self._look(), float(action), full, False, {"last": self.tape[-1]}

    def _look(self) -> Any:
        if self.kind == "text":
            return "".join("abc"[x] for x in self.tape)
        if self.kind == "sequence":
            return tuple(np.int64(x) for x in self.tape)
        if len(self.tape) % 2:
            return np.int64(0), np.int64(self.tape[-1])
        return np.int64(1), np.array([len(self.tape), self.tape[0]], np.float32)


class Gauge(gym.Env[Floats, np.int64]):
    """A needle between 0 and `width`; two of them have different spaces."""

    metadata = {"render_modes": []}

    def __init__(self, width: int) -> None:
        self.observation_space = spaces.Box(0, width, (1,), np.float32)
        self.action_space = spaces.Discrete(3)
        self.width = width
        self.needle = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        super().reset(seed=seed)
        self.needle = float(self.np_random.uniform(0, self.width / 2))
        return np.array([self.needle], np.float32), {}

    def step(self, action: np.int64) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        self.needle = min(self.needle + 0.3 * int(action), float(self.width))
        full = self.needle >= self.width
        return np.array([self.needle], np.float32), self.needle, full, False, {}
