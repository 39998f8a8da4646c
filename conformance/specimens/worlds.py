"""Single environments, each correct, and each awkward in a way of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

_MOVES = ((0, 1), (0, -1), (1, 0), (-1, 0))


@dataclass(frozen=True)
class Kind:
    """The properties of a world.

    Attributes:
        world: A key of `STEPS`.
        size: Of the world, in whatever it measures.
        limit: The time limit; 0 for none.
        obs: A key of `SHOWS`.
        actions: A key of `ACTIONS`.
        start: `"fixed"`, `"random"` or `"kept"`, where the last episode ended.
        goal: Whether the far corner ends the episode.
        slip: The chance that another action is taken.
        reward: `"sparse"`, `"zero"`, `"drawn"`, `"int"`, `"large"` or `"dense"`.
        infos: `"none"`, `"some"`, `"last"`, `"wild"` or `"masks"`.
        limits_differ: Whether each row has another time limit.
        more: Names of further traits: `"flags"` are NumPy's, `"answers"` to any name, `"shared"`
            spaces, `"both"` flags at the limit, `"chance"` ends episodes, `"parks"` at one place
            when the time is up.
    """

    world: str = "grid"
    size: int = 3
    limit: int = 6
    obs: str = "index"
    actions: str = "discrete"
    start: str = "fixed"
    goal: bool = True
    slip: float = 0.0
    reward: str = "sparse"
    infos: str = "none"
    limits_differ: bool = False
    more: frozenset[str] = field(default=frozenset())


ACTIONS: Mapping[str, Callable[[], Any]] = {
    "discrete": lambda: spaces.Discrete(4),
    "start": lambda: spaces.Discrete(4, start=-1),
    "two": lambda: spaces.Discrete(2),
    "many": lambda: spaces.Discrete(40),
    "box": lambda: spaces.Box(-1, 1, (2,), np.float32),
    "unbounded": lambda: spaces.Box(-np.inf, np.inf, (1,), np.float64),
    "multi": lambda: spaces.MultiDiscrete([4, 3]),
    "binary": lambda: spaces.MultiBinary(2),
    "dict": lambda: spaces.Dict(a=spaces.Discrete(4), b=spaces.Box(-1, 1, (1,), np.float32)),
    "tuple": lambda: spaces.Tuple((spaces.Discrete(4), spaces.Discrete(2))),
}


def _number(action: Any) -> int:
    """One of four, from any action."""
    if isinstance(action, dict):
        action = action["a"]
    if isinstance(action, tuple):
        action = action[0]
    value = float(np.ravel(np.asarray(action, float))[0])
    return int(np.floor(4 * (np.clip(value, -1, 0.999) + 1) / 2)) if value % 1 else int(value) % 4


class World(gym.Env[Any, Any]):
    """A point (x, y) in a world with limits, whose steps and looks are taken from its kind."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}
    render_mode = "rgb_array"

    def __init__(self, kind: Kind, row: int = 0) -> None:
        self.kind, self.row = kind, row
        if "shared" in kind.more:
            self.observation_space, self.action_space = _shared(kind)
        else:
            self.observation_space = SHOWS[kind.obs][0](kind)
            self.action_space = ACTIONS[kind.actions]()
        self.limit = kind.limit + (row if kind.limits_differ else 0)
        self.at = np.zeros(2)
        self.speed = np.zeros(2)
        self.time = 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "kind" or "answers" not in self.kind.more:
            raise AttributeError(name)
        return lambda *args, **kwargs: None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if self.kind.start == "random":
            self.at = self.np_random.integers(0, self.kind.size, 2).astype(float)
            if self.kind.world == "plane":
                self.at = self.at + self.np_random.uniform(0, 1, 2)
        elif self.kind.start == "fixed":
            self.at = np.zeros(2)
        self.speed = np.zeros(2)
        self.time = 0
        return self.look(), {} if self.kind.infos in ("none", "last") else self.info()

    def step(self, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        move = _number(action)
        if self.kind.slip and self.np_random.random() < self.kind.slip:
            move = int(self.np_random.integers(4))
        self.time += 1
        STEPS[self.kind.world](self, move)
        arrived = self.kind.goal and bool((self.at >= self.kind.size - 1).all())
        if "chance" in self.kind.more:
            arrived = bool(self.np_random.random() < 0.3)
        over = bool(self.limit) and self.time >= self.limit
        terminated, truncated = arrived, over and not arrived
        if over and "parks" in self.kind.more:
            self.at = np.ones(2)
        if "both" in self.kind.more:
            terminated = truncated = over or arrived
        info = {} if self.kind.infos == "none" else self.info()
        if self.kind.infos == "last" and not (terminated or truncated):
            info = {}
        flags: tuple[Any, Any] = (terminated, truncated)
        if "flags" in self.kind.more:
            flags = (np.bool_(terminated), np.bool_(truncated))
        return self.look(), self.reward(move, arrived), *flags, info

    def reward(self, move: int, arrived: bool) -> Any:
        kind = self.kind.reward
        if kind == "drawn":
            return float(self.np_random.normal())
        if kind == "int":
            return -1
        values = {"sparse": float(arrived), "zero": 0.0, "large": 1e6 * (move + 1)}
        return values.get(kind, float(self.at.sum()) / 7 - 0.1 * move)

    def info(self) -> dict[str, Any]:
        if self.kind.infos == "masks":
            return {"action_mask": self.at[0] > np.arange(4) - 2}
        found: dict[str, Any] = {"time": float(self.time), "at": self.at.copy()}
        if self.kind.infos == "wild":
            found |= {"text": f"t{self.time}", "nothing": None, "nested": {"x": self.at[0]}}
            if self.time % 2:
                found["odd"] = [self.time, "odd"]
        return found

    def look(self) -> Any:
        return SHOWS[self.kind.obs][1](self)

    def render(self) -> Any:
        return np.full((4, 6, 3), self.row, np.uint8)


class CutInTheCorner(World):
    """Broken: in the corner it is only truncated if the time is up, though that is the goal."""

    def __init__(self) -> None:
        super().__init__(Kind(size=2, limit=3))

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        late = self.time >= self.limit
        return obs, reward, terminated and not late, truncated or late, info


class CutInTheCornerWithAClock(CutInTheCorner):
    """Broken likewise; no state is that of another time."""

    def __init__(self) -> None:
        super().__init__()
        self.kind = Kind(size=2, limit=4)
        self.observation_space = spaces.Box(0, 9, (2,), np.float32)

    def look(self) -> Any:
        return np.array([self.at @ (1, 2), self.time], np.float32)


class Drifter(gym.Env[Any, Any]):
    """It drifts away, until it stumbles or its time is up; `both` is whether both has come."""

    observation_space: Any = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space: Any = spaces.Discrete(3)
    render_mode = "rgb_array"
    both = False

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.at, self.time = self.np_random.uniform(-0.1, 0.1, 2), 0
        return self.at.astype(np.float32), {}

    def step(self, action: Any) -> Any:
        self.at = self.at + np.array([0.5, 0.25 * action])
        self.time += 1
        stumbles, late = bool(self.at[1] > 1.6), self.time >= 8
        self.both = stumbles and late
        return self.at.astype(np.float32), 1.0, stumbles, late, {}

    def render(self) -> Any:
        return np.zeros((4, 4, 3), np.uint8)


_SPACES: dict[Kind, tuple[Any, Any]] = {}


def _shared(kind: Kind) -> tuple[Any, Any]:
    """The same spaces for all rows and all instances, as in a class that defines them."""
    if kind not in _SPACES:
        _SPACES[kind] = SHOWS[kind.obs][0](kind), ACTIONS[kind.actions]()
    return _SPACES[kind]


# How a world moves


def _grid(world: World, move: int) -> None:
    world.at = np.clip(world.at + _MOVES[move], 0, world.kind.size - 1)


def _pit(world: World, move: int) -> None:
    """A place in the middle that nothing leads out of."""
    if (world.at != world.kind.size // 2).any():
        _grid(world, move)


def _clock(world: World, move: int) -> None:
    """Whatever one does, it goes on to its end, and stays there."""
    world.at = np.full(2, float(min(world.time, world.kind.size - 1)))


def _late(world: World, move: int) -> None:
    """An action shows in the observation of the next step only."""
    world.at = np.clip(world.at + world.speed, 0, world.kind.size - 1)
    world.speed = np.array(_MOVES[move], float)


def _plane(world: World, move: int) -> None:
    world.at = world.at + 0.25 * np.array(_MOVES[move]) + 0.125


def _noise(world: World, move: int) -> None:
    world.at = world.np_random.uniform(0, world.kind.size - 1, 2)


def _still(world: World, move: int) -> None:
    """A bandit: nothing moves."""


def _door(world: World, move: int) -> None:
    """Nothing moves but by the first action."""
    if move == 0:
        _grid(world, 2)


STEPS: Mapping[str, Callable[[World, int], None]] = {
    "grid": _grid,
    "pit": _pit,
    "clock": _clock,
    "late": _late,
    "plane": _plane,
    "noise": _noise,
    "still": _still,
    "door": _door,
}


# What a world shows


def _point(world: World) -> Any:
    return world.at.astype(np.float32)


def _index(world: World) -> int:
    x, y = np.clip(world.at, 0, world.kind.size - 1).astype(int)
    return int(x * world.kind.size + y)


def _image(world: World) -> Any:
    image = np.zeros((8, 8, 3), np.uint8)
    x, y = np.clip(world.at, 0, 7).astype(int)
    image[x, y] = 255
    return image


_BOX = (-100, 1000)
SHOWS: Mapping[str, tuple[Callable[[Kind], Any], Callable[[World], Any]]] = {
    "index": (lambda kind: spaces.Discrete(kind.size**2), _index),
    "start": (lambda kind: spaces.Discrete(kind.size**2, start=5), lambda w: _index(w) + 5),
    "int64": (lambda kind: spaces.Discrete(kind.size**2), lambda w: np.int64(_index(w))),
    "point": (lambda kind: spaces.Box(*_BOX, (2,), np.float32), _point),
    "double": (lambda kind: spaces.Box(-np.inf, np.inf, (2,), np.float64), lambda w: w.at.copy()),
    "table": (
        lambda kind: spaces.Box(*_BOX, (2, 2), np.float32),
        lambda w: np.tile(_point(w), (2, 1)),
    ),
    "scalar": (
        lambda kind: spaces.Box(*_BOX, (), np.float32),
        lambda w: np.array(w.at[0], np.float32),
    ),
    "onehot": (
        lambda kind: spaces.MultiBinary(kind.size**2),
        lambda w: np.eye(w.kind.size**2, dtype=np.int8)[_index(w)],
    ),
    "cells": (
        lambda kind: spaces.MultiDiscrete([kind.size] * 2),
        lambda w: np.clip(w.at, 0, w.kind.size - 1).astype(np.int64),
    ),
    "image": (lambda kind: spaces.Box(0, 255, (8, 8, 3), np.uint8), _image),
    "blind": (lambda kind: spaces.Box(0, 1, (1,), np.float32), lambda w: np.zeros(1, np.float32)),
    "timed": (
        lambda kind: spaces.Box(*_BOX, (3,), np.float32),
        lambda w: np.append(_point(w), np.float32(w.time)),
    ),
    "dict": (
        lambda kind: spaces.Dict(
            point=spaces.Box(*_BOX, (2,), np.float32), cell=spaces.Discrete(kind.size**2)
        ),
        lambda w: {"point": _point(w), "cell": _index(w)},
    ),
    "goal": (
        lambda kind: spaces.Dict(
            {
                name: spaces.Box(*_BOX, (2,), np.float32)
                for name in ("observation", "achieved_goal", "desired_goal")
            }
        ),
        lambda w: {
            "observation": _point(w),
            "achieved_goal": _point(w),
            "desired_goal": np.full(2, w.kind.size - 1, np.float32),
        },
    ),
    "tuple": (
        lambda kind: spaces.Tuple(
            (spaces.Box(*_BOX, (2,), np.float32), spaces.Discrete(kind.size**2))
        ),
        lambda w: (_point(w), _index(w)),
    ),
    "text": (lambda kind: spaces.Text(8), lambda w: f"cell{_index(w)}"),
}
