"""The environment of the worker processes; importing this imports neither torch nor SB3."""

from __future__ import annotations

import time
from typing import Any

import gymnasium as gym
import numpy as np


class ImageEnv(gym.Env[Any, Any]):
    """A new image with every step, and no work besides."""

    observation_space = gym.spaces.Box(0, 255, (84, 84, 4), np.uint8)
    action_space = gym.spaces.Discrete(2)

    def __init__(self) -> None:
        self.images = np.random.default_rng(0).integers(256, size=(16, 84, 84, 4), dtype=np.uint8)
        self.time = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return self.step(0)[0], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        return self.images[self.time % 16], 0.0, False, self.time % 500 == 0, {}


class SlowEnv(ImageEnv):
    """Some work with every step.

    Args:
        cost: How many seconds of it.
    """

    observation_space = gym.spaces.Box(-1, 1, (4,), np.float32)

    def __init__(self, cost: float = 200e-6) -> None:
        self.observation = np.zeros(4, np.float32)
        self.time, self.cost = 0, cost

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        until = time.process_time() + self.cost
        while time.process_time() < until:
            pass
        self.time += 1
        return self.observation, 0.0, False, self.time % 500 == 0, {}


class TinyEnv(gym.Env[Any, Any]):
    """As little as an environment can do: what is left is what the way to it costs."""

    observation_space = gym.spaces.Box(0, 1, (4,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self) -> None:
        self.observation = np.zeros(4, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return self.observation, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.observation, 0.0, False, False, {}
