"""A small VectorEnv that keeps the contract, in every autoreset mode."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, iterate

MODES = ("NextStep", "SameStep", "Disabled")


@dataclass(frozen=True)
class Form:
    """The properties of the environment.

    Attributes:
        mode: The value of its autoreset mode.
        lengths: How much there is to do in an episode, for each row; action 2 does two at once.
        endings: `"terminated"`, `"truncated"` or `"both"`, in turn over the rows.
        infos: Whether there are any.
        kind: The kind of observations.
        one_generator: Whether one generator serves all rows: then a list of seeds is refused.
        noise: Whether steps draw random numbers.
        sub_envs: Whether single environments can be reached.
        masks: Whether it knows `reset_mask`; it always does without autoreset.
        steady: Whether each action does the same amount, so that rows end together.
    """

    mode: str = "NextStep"
    lengths: tuple[int, ...] = (3, 5, 14)
    endings: tuple[str, ...] = ("terminated", "truncated", "both")
    infos: bool = True
    kind: str = "box"
    one_generator: bool = False
    noise: bool = False
    sub_envs: bool = True
    masks: bool = True
    steady: bool = False


_SPACES: dict[str, spaces.Space[Any]] = {
    "box": spaces.Box(-1000, 1000, (2,), np.float32),
    "counted": spaces.Box(-1000, 1000, (3,), np.float64),
    "discrete": spaces.Discrete(50),
    "constant": spaces.Box(0, 1, (1,), np.float32),
    "image": spaces.Box(0, 255, (4, 4, 3), np.uint8),
    "dict": spaces.Dict(x=spaces.Box(-1000, 1000, (2,), np.float32), row=spaces.Discrete(20)),
    "tuple": spaces.Tuple((spaces.Box(-1000, 1000, (), np.float64), spaces.Discrete(20))),
    "text": spaces.Text(12),
}


class RowEnv(gym.Env[Any, Any]):
    """A row: it adds up actions from a random start until its episode ends."""

    def __init__(self, form: Form, row: int) -> None:
        self.form, self.row = form, row
        self.observation_space = deepcopy(_SPACES[form.kind])
        self.action_space = spaces.Discrete(3)
        self.length = form.lengths[row % len(form.lengths)]
        self.x = self.start = 0.0
        self.done = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.x = float(self.np_random.uniform(0, 10)) + (options or {}).get("offset", 0)
        self.start = self.x
        self.done = 0
        return self.observe(), {"start": self.x} if self.form.infos else {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.x += 0.3 + float(action)
        if self.form.noise:
            self.x += float(self.np_random.uniform(0, 0.1))
        self.done += 2 if action == 2 and not self.form.steady else 1
        over = self.done >= self.length
        ending = self.form.endings[self.row % len(self.form.endings)] if over else ""
        info = {"x": self.x, "nested": {"done": self.done}} if self.form.infos else {}
        reward = 1 + self.x / 7
        return (
            self.observe(),
            reward,
            ending in ("terminated", "both"),
            ending in ("truncated", "both"),
            info,
        )

    def observe(self) -> Any:
        kind = self.form.kind
        box = np.array([self.x, self.row], np.float32)
        if kind == "box":
            return box
        if kind == "counted":
            return np.array([self.x, self.start, self.done])
        if kind == "discrete":
            return np.int64(self.x)
        if kind == "constant":
            return np.zeros(1, np.float32)
        if kind == "image":
            return np.full((4, 4, 3), int(self.x * 5) % 256, np.uint8)
        if kind == "dict":
            return {"x": box, "row": np.int64(self.row)}
        if kind == "tuple":
            return np.array(self.x), np.int64(self.row)
        return f"{self.x:.3f}".replace(".", "p")

    def render(self) -> Any:
        return np.full((6, 8, 3), self.row, np.uint8)


class RowsEnv(VectorEnv[Any, Any, Any]):
    """Rows of `RowEnv`, in any autoreset mode; small methods, so that each can be broken."""

    metadata = {"render_modes": ["rgb_array"]}
    row: type[RowEnv] = RowEnv

    def __init__(self, form: Form, n: int = 3) -> None:
        self.form = form
        self.num_envs = n
        self.autoreset_mode = AutoresetMode(form.mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = "rgb_array"
        self.rows = [self.make_row(i) for i in range(n)]
        self.single_observation_space = self.rows[0].observation_space
        self.single_action_space = self.rows[0].action_space
        self.observation_space = batch_space(self.single_observation_space, n)
        self.action_space = batch_space(self.single_action_space, n)
        self.obs: list[Any] = [None] * n
        self.pending = np.zeros(n, bool)

    def make_row(self, i: int) -> RowEnv:
        return self.row(self.form, i)

    # Resets

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        options = dict(options or {})
        mask = options.pop("reset_mask", None) if self.knows_masks() else None
        if mask is None:
            rows = np.ones(self.num_envs, bool)
        else:
            self.check_mask(mask)
            rows = np.asarray(mask)
        infos: dict[str, Any] = {}
        for i, row_seed in enumerate(self.seeds(seed)):
            if rows[i]:
                info = self.begin(i, row_seed, options)
                infos = self.add_info(infos, info, i)
        self.clear(rows, masked=mask is not None)
        return self.batch(), infos

    def knows_masks(self) -> bool:
        return self.form.masks or self.form.mode == "Disabled"

    def check_mask(self, mask: Any) -> None:
        if getattr(mask, "shape", None) != (self.num_envs,) or mask.dtype != bool:
            raise ValueError(f"Expected a bool array of shape ({self.num_envs},), got {mask!r}")

    def seeds(self, seed: Any) -> list[Any]:
        if self.form.one_generator:
            VectorEnv.reset(self, seed=seed)  # refuses lists
            for row in self.rows:
                row.np_random = self.np_random
            return [None] * self.num_envs
        if seed is None:
            return [None] * self.num_envs
        return list(seed) if isinstance(seed, list) else [seed + i for i in range(self.num_envs)]

    def begin(self, i: int, seed: Any, options: dict[str, Any]) -> dict[str, Any]:
        """A new episode of row i, as the caller asked; returns its info."""
        self.obs[i], info = self.rows[i].reset(seed=seed, options=options)
        return info

    def clear(self, rows: Any, masked: bool) -> None:
        """Forget that these rows were to be reset."""
        self.pending[rows] = False

    # Steps

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        n = self.num_envs
        self.check_actions(actions)
        if self.form.mode == "Disabled":
            self.refuse_ended()
        self.infos: dict[str, Any] = {}
        self.finals: dict[int, tuple[Any, dict[str, Any]]] = {}
        self.rewards, self.flags = np.zeros(n), np.zeros((2, n), bool)
        self.advance(list(iterate(self.action_space, actions)))
        if self.form.mode != "SameStep":
            self.pending[:] = self.flags.any(axis=0)
        if self.finals:
            self.add_finals()
        return (
            self.batch(),
            self.rewards.copy(),
            self.flags[0].copy(),
            self.flags[1].copy(),
            self.infos,
        )

    def check_actions(self, actions: Any) -> None:
        if len(actions) != self.num_envs:
            raise ValueError(f"Expected {self.num_envs} actions, got {len(actions)}")

    def refuse_ended(self) -> None:
        if self.pending.any():
            raise RuntimeError(f"rows {np.flatnonzero(self.pending)} have to be reset first")

    def advance(self, actions: list[Any]) -> None:
        for i, action in enumerate(actions):
            if self.pending[i]:
                self.reset_step(i, action)
            else:
                self.step_row(i, action)

    def reset_step(self, i: int, action: Any) -> None:
        """The step after an ending, in NEXT_STEP mode."""
        self.infos = self.add_info(self.infos, self.autoreset(i), i)

    def step_row(self, i: int, action: Any) -> None:
        self.obs[i], self.rewards[i], *flags, info = self.rows[i].step(action)
        self.flags[:, i] = flags
        if any(flags) and self.form.mode == "SameStep":
            info = self.restart(i, info)
        self.infos = self.add_info(self.infos, info, i)

    def restart(self, i: int, info: dict[str, Any]) -> dict[str, Any]:
        """The next episode, in SAME_STEP mode; returns its info."""
        last = self.obs[i]
        first = self.autoreset(i)
        self.finals[i] = self.final(i, last, info)
        return first

    def autoreset(self, i: int) -> dict[str, Any]:
        """A new episode of row i, as the last one has ended; returns its info."""
        self.obs[i], info = self.rows[i].reset()
        return info

    def final(self, i: int, obs: Any, info: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """What the infos tell of the last step, in SAME_STEP mode."""
        return obs, info

    def add_finals(self) -> None:
        for i, (obs, info) in self.finals.items():
            self.infos = self.add_info(self.infos, {"final_obs": obs, "final_info": info}, i)

    # What goes out

    def add_info(self, infos: dict[str, Any], info: dict[str, Any], i: int) -> dict[str, Any]:
        return self._add_info(infos, info, i)

    def batch(self) -> Any:
        return _stack(self.single_observation_space, self.obs)

    # Sub-environments, rendering, life

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        if not self.form.sub_envs:
            raise AttributeError(name)
        found = [getattr(row, name) for row in self.rows]
        return tuple(value(*args, **kwargs) if callable(value) else value for value in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        if not self.form.sub_envs:
            raise AttributeError(name)
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ValueError(f"Expected {self.num_envs} values, got {len(values)}")
        for row, value in zip(self.rows, values, strict=True):
            setattr(row, name, value)

    def render(self) -> Any:
        return tuple(row.render() for row in self.rows)


def _stack(space: Any, values: Iterable[Any]) -> Any:
    values = list(values)
    if isinstance(space, spaces.Dict):
        return {key: _stack(space[key], [value[key] for value in values]) for key in space}
    if isinstance(space, spaces.Tuple):
        return tuple(_stack(part, [v[k] for v in values]) for k, part in enumerate(space.spaces))
    return np.stack(values) if space.shape is not None else tuple(values)


def reference(form: Form, n: int = 3) -> list[Callable[[], RowEnv]]:
    """The single environments of a `RowsEnv`."""
    return [lambda i=i: RowEnv(form, i) for i in range(n)]  # type: ignore[misc]
