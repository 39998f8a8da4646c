"""A VecEnv that keeps its contract, in plain NumPy; small methods, so that each can be broken.

With Stable-Baselines3 installed it is one of its `VecEnv`s; without, it has the same methods.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

if TYPE_CHECKING:
    Base: Any = object
else:
    try:
        from stable_baselines3.common.vec_env import VecEnv as Base
    except ModuleNotFoundError:
        Base = object

OBSERVATIONS: dict[str, spaces.Space[Any]] = {
    "box": spaces.Box(-50, 50, (3,), np.float32),
    "image": spaces.Box(0, 255, (8, 8, 3), np.uint8),
    "dict": spaces.Dict(
        {"point": spaces.Box(-50, 50, (3,), np.float32), "count": spaces.Discrete(100)}
    ),
    "tuple": spaces.Tuple((spaces.Box(-50, 50, (3,), np.float32), spaces.Discrete(100))),
    "integer": spaces.Discrete(4, start=2),
    "constant": spaces.Box(-1, 1, (2,), np.float32),
}


@dataclass(frozen=True)
class Config:
    """How the rows behave.

    Attributes:
        rows: How many there are.
        lengths: Of the episodes, by row.
        ends: "terminated", "truncated" or "both", by row.
        observation: A key of `OBSERVATIONS`.
        height: Of images.
        continuous: Whether actions are.
        rendering: Whether there are images.
        info: Whether infos say anything.
        last_reward: The reward of the last step of an episode, if it is not like the others.
    """

    rows: int = 3
    lengths: tuple[int, ...] = (3, 4, 5)
    ends: tuple[str, ...] = ("truncated", "terminated", "both")
    observation: str = "box"
    height: int = 8
    continuous: bool = False
    rendering: bool = True
    info: bool = True
    last_reward: float | None = None


class Point(gym.Env[Any, Any]):
    """A point that is pushed about; where it starts is drawn, all else follows."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(self, config: Config, row: int) -> None:
        self.config, self.row = config, row
        self.observation_space = deepcopy(OBSERVATIONS[config.observation])
        if config.observation == "image":
            self.observation_space = spaces.Box(0, 255, (config.height, 8, 3), np.uint8)
        self.action_space: Any = spaces.Discrete(3)
        if config.continuous:
            self.action_space = spaces.Box(-1, 1, (2,), np.float32)
        self.render_mode = "rgb_array" if config.rendering else None
        self.point = np.zeros(3)
        self.time = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.point = self.np_random.uniform(-1, 1, 3) + (options or {}).get("shift", 0)
        self.time = 0
        info = {"start": float(self.point[0]), "nested": {"row": self.row}}
        return self.observe(), info if self.config.info else {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        push = np.mean(action) if self.config.continuous else int(action) - 1
        self.time += 1
        self.point = self.point + np.array([0.5 + push, 0.25, 0.125 * self.time])
        lengths, ends = self.config.lengths, self.config.ends
        over = self.time >= lengths[self.row % len(lengths)]
        end = ends[self.row % len(ends)] if over else ""
        info = {"time": self.time, "place": self.point.copy()} if self.config.info else {}
        reward = float(self.point[0])
        if over and self.config.last_reward is not None:
            reward = self.config.last_reward
        return self.observe(), reward, end in ("terminated", "both"), _cut(end), info

    def observe(self) -> Any:
        kind, point = self.config.observation, self.point.astype(np.float32)
        if kind == "image":
            image = np.zeros((self.config.height, 8, 3), np.uint8)
            image[0, :3, 0] = np.clip(128 + 4 * self.point, 0, 255)
            return image
        if kind == "integer":
            return np.int64(2 + self.time % 2)
        if kind == "constant":
            return np.zeros(2, np.float32)
        if kind == "dict":
            return {"point": point, "count": np.int64(self.time)}
        return (point, np.int64(self.time)) if kind == "tuple" else point

    def render(self) -> Any:
        return np.full((6, 4, 3), self.row, np.uint8)


def _cut(end: str) -> bool:
    return end in ("truncated", "both")


class Points(Base):  # type: ignore[misc]
    """Several points, stepped one after the other; each row is reset in the step that ends it."""

    row: Any = Point

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or Config()
        self.num_envs: Any = self.config.rows
        # An array: a list of them would be taken for their reference, see `Kept`.
        self.envs: Any = np.empty(self.num_envs, object)
        self.envs[:] = [self.make_row(row) for row in range(self.num_envs)]
        self.observation_space = self.envs[0].observation_space
        self.action_space = self.envs[0].action_space
        self.render_mode = self.envs[0].render_mode
        self.metadata: Any = dict(Point.metadata)
        self.reset_infos: Any = [{} for _ in self.envs]
        self._seeds: Any = [None] * self.num_envs
        self._options: Any = [{} for _ in self.envs]
        self.pending: Any = None
        self.closed = False

    def make_row(self, row: int) -> Any:
        # The last row has a wrapper that the others have not.
        env = self.row(self.config, row)
        return TimeLimit(env, 1000) if row and row == self.config.rows - 1 else env

    # Seeds, options, reset

    def seed(self, seed: int | None = None) -> Any:
        first = int(np.random.randint(2**31)) if seed is None else seed
        self._seeds = [first + i for i in range(self.num_envs)]
        return list(self._seeds)

    def set_options(self, options: Any = None) -> None:
        each = options if isinstance(options, list) else [options or {}] * self.num_envs
        self._options = deepcopy(each)

    def reset(self) -> Any:
        self.pending = None
        observations = [self.start(i) for i in range(self.num_envs)]
        self.forget()
        return self.batch(observations)

    def start(self, i: int) -> Any:
        """Begin an episode because the caller asked for it."""
        obs, info = self.envs[i].reset(seed=self._seeds[i], options=self._options[i] or None)
        self.reset_infos[i] = info
        return self.observed(i, obs, new=True)

    def observed(self, i: int, obs: Any, *, new: bool = False) -> Any:
        """The observation of row i; it is the first one of an episode if it is new."""
        return obs

    def forget(self) -> None:
        """Seeds and options are used once."""
        self._seeds = [None] * self.num_envs
        self._options = [{} for _ in self.envs]

    # Step

    def step(self, actions: Any) -> Any:
        self.step_async(actions)
        return self.step_wait()

    def step_async(self, actions: Any) -> None:
        if self.pending is not None:
            raise RuntimeError("Expected step_wait or reset, got a second step_async.")
        if len(actions) != self.num_envs:
            raise ValueError(f"Expected {self.num_envs} actions, got len(actions)={len(actions)}.")
        self.pending = actions

    def step_wait(self) -> Any:
        if self.pending is None:
            raise RuntimeError("Expected step_async before step_wait.")
        actions, self.pending = self.pending, None
        rows = [self.step_row(i, actions[i]) for i in range(self.num_envs)]
        observations, rewards, dones, infos = zip(*rows, strict=True)
        obs, flags = self.batch(list(observations)), np.array(dones, bool)
        return self.results(obs, np.array(rewards, np.float32), flags, list(infos))

    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        """What a step returns."""
        return obs, rewards, dones, infos

    def step_row(self, i: int, action: Any) -> tuple[Any, float, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.envs[i].step(action)
        obs = self.observed(i, obs)
        info["TimeLimit.truncated"] = self.flag(terminated, truncated)
        done = terminated or truncated
        if done:
            obs = self.end(i, obs, info)
        return obs, reward, done, info

    def flag(self, terminated: bool, truncated: bool) -> Any:
        return truncated and not terminated

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        """Keep the last observation, and begin the next episode; returns its first one."""
        first, self.reset_infos[i] = self.autoreset(i)
        first = self.observed(i, first, new=True)
        info["terminal_observation"] = self.terminal(i, last, first)
        return first

    def autoreset(self, i: int) -> Any:
        return self.envs[i].reset()

    def terminal(self, i: int, last: Any, first: Any) -> Any:
        """The terminal observation of an episode, by its last one and the next first one."""
        return last

    def batch(self, observations: list[Any]) -> Any:
        space = self.observation_space
        if isinstance(space, spaces.Dict):
            return {key: stack([o[key] for o in observations], space[key]) for key in space.spaces}
        if isinstance(space, spaces.Tuple):
            columns = zip(*observations, strict=True)
            return tuple(stack(part, sub) for part, sub in zip(columns, space, strict=True))
        return stack(observations, space)

    # Sub-environments

    def named(self, indices: Any) -> list[int]:
        if indices is None:
            return list(range(self.num_envs))
        if isinstance(indices, Iterable):
            return [range(self.num_envs)[i] for i in indices]
        return [range(self.num_envs)[indices]]

    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        return [self.envs[i].get_wrapper_attr(attr_name) for i in self.named(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        for i in self.named(indices):
            setattr(self.envs[i], attr_name, value)

    def has_attr(self, attr_name: str) -> bool:
        return all(env.has_wrapper_attr(attr_name) for env in self.envs)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        rows = self.named(indices)
        return [self.envs[i].get_wrapper_attr(method_name)(*args, **kwargs) for i in rows]

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> Any:
        return [self.is_wrapped(self.envs[i], wrapper_class) for i in self.named(indices)]

    def is_wrapped(self, env: Any, wrapper_class: type) -> bool:
        while isinstance(env, gym.Wrapper):
            if isinstance(env, wrapper_class):
                return True
            env = env.env
        return False

    # Rendering, life

    def get_images(self) -> Any:
        return [env.render() for env in self.envs]

    def render(self, mode: str | None = None) -> Any:
        if self.render_mode is None or mode not in (None, self.render_mode):
            warnings.warn(f"There are no images of mode {mode!r}.", stacklevel=2)
            return None
        return np.concatenate(self.get_images(), axis=1)

    def close(self) -> None:
        for env in self.envs:
            env.close()
        self.closed = True


class Kept(Points):
    """They are in a list, in which the kit finds them."""

    def __init__(self, config: Config | None = None) -> None:
        super().__init__(config)
        self.rows = list(self.envs)


def stack(parts: Any, space: Any) -> Any:
    """One array of the dtype of the space."""
    return np.array(list(parts), space.dtype)


OPTIONS = {"shift": 7}


def reference(config: Config | None = None) -> list[Any]:
    """The factories of the single environments of `Points`."""
    rows = (config or Config()).rows
    return [lambda row=row: Points(config).envs[row] for row in range(rows)]
