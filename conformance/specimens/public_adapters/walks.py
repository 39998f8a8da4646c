"""The simulator of the ports: rows that walk along a line, and know nothing of any interface."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces


class Walks:
    """Rows that are pushed along a line.

    An episode begins at a random place, and ends at a wall or after `LIMIT` steps. An observation
    is the place, the place of the start, and the age: float32 of shape (3,). The reward is
    `1 - |place|`.

    Attributes:
        place: Where each row is.
        start: Where its episode began.
        age: The steps of its episode.
    """

    LIMIT = 12
    WALL = 2.0

    def __init__(self, n: int, seed: int = 0) -> None:
        self.n = n
        self.place, self.start = np.zeros(n), np.zeros(n)
        self.age = np.zeros(n, np.int64)
        self.seed(range(seed, seed + n))
        self.reset()

    @staticmethod
    def observation_space() -> spaces.Box:
        return spaces.Box(-20, 20, (3,), np.float32)

    @staticmethod
    def action_space() -> spaces.Box:
        return spaces.Box(-1, 1, (1,), np.float32)

    def seed(self, seeds: Iterable[int | None]) -> None:
        """Give each row a generator of its own."""
        self.generators = [np.random.default_rng(seed) for seed in seeds]

    def share(self, seed: int | None) -> None:
        """Give all rows one generator."""
        self.generators = [np.random.default_rng(seed)] * self.n

    def reset(self, rows: Sequence[int] | np.ndarray[Any, Any] | None = None) -> None:
        """Begin an episode in these rows, or in all."""
        for i in range(self.n) if rows is None else rows:
            self.place[i] = self.start[i] = self.generators[i].uniform(-1, 1)
            self.age[i] = 0

    def move(self, pushes: Any) -> None:
        """Push each row; a push beyond 1 counts as 1."""
        self.place += 0.5 * np.clip(np.asarray(pushes, np.float64).reshape(self.n), -1, 1)
        self.age += 1

    @property
    def obs(self) -> np.ndarray[Any, Any]:
        return np.stack([self.place, self.start, self.age], axis=1).astype(np.float32)

    @property
    def rewards(self) -> np.ndarray[Any, Any]:
        return 1 - np.abs(self.place)

    @property
    def terminated(self) -> np.ndarray[Any, Any]:
        return np.asarray(np.abs(self.place) >= self.WALL)

    @property
    def truncated(self) -> np.ndarray[Any, Any]:
        return np.asarray(self.age >= self.LIMIT)

    def frame(self, row: int) -> np.ndarray[Any, Any]:
        return np.full((8, 8, 3), 20 * row + self.age[row], np.uint8)


class AnswersNone:
    """What RLGym and mbt-gym do where they are asked for something of their rows."""

    num_envs: int

    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        return [None] * self.num_envs if attr_name == "render_mode" else None

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Do nothing."""

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        return None

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs

    def get_images(self) -> Any:
        return None
