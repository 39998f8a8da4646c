"""Drive an environment through either API, and note what each row sees."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import concatenate, create_empty_array

from sb3compat._convert.arrays import is_foreign_array, to_numpy
from sb3compat._convert.infos import mask_of
from sb3compat._convert.types import Action, AnyVectorEnv, Info, Observation, Value
from sb3compat._trace.record import Call, Ending, Part, Role


class Driver(Protocol):
    """An environment, and what its rows see.

    Attributes:
        num_envs: The number of rows.
        action_space: The space of one action.
        calls_after: How many calls after an ending tell how the row goes on.
    """

    num_envs: int
    action_space: Any
    calls_after: int

    def reset(self, seed: int) -> list[Call]:
        """Reset all rows; returns one call for each."""

    def step(self, actions: Sequence[Action], number: int) -> list[list[Call]]:
        """Step all rows; returns the calls of each, which are two where a row had to be reset."""


class VecEnvDriver:
    """A `VecEnv`, or an object with its methods."""

    calls_after = 1

    def __init__(self, env: Any) -> None:
        self._env = env
        self.num_envs: int = env.num_envs
        self.action_space = env.action_space

    def reset(self, seed: int) -> list[Call]:
        """Seed all rows, and reset them."""
        seeding = getattr(self._env, "seed", None)
        if callable(seeding):
            seeding(seed)
        obs = self._env.reset()
        infos = [deepcopy(info) for info in getattr(self._env, "reset_infos", [])]
        infos += [{} for _ in range(self.num_envs - len(infos))]
        return [
            Call("reset", (Part("obs", _row(obs, i)), *_rest(info, "reset_infos")), info)
            for i, info in enumerate(infos)
        ]

    def step(self, actions: Sequence[Action], number: int) -> list[list[Call]]:
        """Step all rows; a row that is done is at the start of its next episode."""
        obs, rewards, dones, infos = self._env.step(_batch(self.action_space, actions))
        resets = getattr(self._env, "reset_infos", [{}] * self.num_envs)
        calls = []
        for i in range(self.num_envs):
            done, info = bool(dones[i]), deepcopy(infos[i])
            parts = [
                Part("action", actions[i]),
                Part("obs", _row(obs, i), "first" if done else ""),
                Part("reward", rewards[i]),
                Part("done", done),
                *_named(info, "terminal_observation", "final"),
                *_named(info, "TimeLimit.truncated"),
                *_rest(info, "infos", "terminal_observation", "TimeLimit.truncated"),
            ]
            if done and len(resets) > i:
                parts += _rest(deepcopy(resets[i]), "reset_infos")
            calls.append([Call(f"step {number}", tuple(parts), info, done, acted=True)])
        return calls


class VectorEnvDriver:
    """A `VectorEnv` in an autoreset mode."""

    def __init__(self, env: AnyVectorEnv, mode: AutoresetMode) -> None:
        self._env = env
        self._mode = mode
        self._over: list[bool] = []
        self.num_envs = env.num_envs
        self.action_space = env.single_action_space
        self.calls_after = 1 if mode == AutoresetMode.SAME_STEP else 2

    def reset(self, seed: int) -> list[Call]:
        """Reset all rows."""
        obs, infos = self._env.reset(seed=seed)
        self._over = [False] * self.num_envs
        return [self._reset_call("reset", obs, infos, i) for i in range(self.num_envs)]

    def step(self, actions: Sequence[Action], number: int) -> list[list[Call]]:
        """Step all rows; in DISABLED mode, reset those that ended, as a user has to."""
        obs, rewards, terminations, truncations, infos = self._env.step(
            _batch(self.action_space, actions)
        )
        calls = []
        for i in range(self.num_envs):
            flags = {"terminated": bool(terminations[i]), "truncated": bool(truncations[i])}
            resets = self._mode == AutoresetMode.NEXT_STEP and self._over[i]
            self._over[i] = any(flags.values()) and not resets
            info = _info_of(infos, i, self.num_envs)
            parts = [
                Part("action (ignored)" if resets else "action", actions[i]),
                Part("obs", _row(obs, i), self._role(self._over[i], resets)),
                Part("reward", rewards[i]),
                *(Part(name, flag) for name, flag in flags.items()),
                *_named(info, "final_obs", "final"),
                *_named(info, "final_info"),
                *_rest(info, "infos", "final_obs", "final_info"),
            ]
            name = f"step {number}"
            calls.append([Call(name, tuple(parts), info, self._over[i], acted=not resets)])
        if self._mode == AutoresetMode.DISABLED and any(self._over):
            self._reset_ended(calls)
        return calls

    def _role(self, ended: bool, resets: bool) -> Role:
        if resets:
            return "first"
        if not ended:
            return ""
        return "first" if self._mode == AutoresetMode.SAME_STEP else "final"

    def _reset_ended(self, calls: list[list[Call]]) -> None:
        mask = np.array(self._over)
        obs, infos = self._env.reset(options={"reset_mask": mask.copy()})
        for i in map(int, np.flatnonzero(mask)):
            calls[i].append(self._reset_call("reset of the row", obs, infos, i, "first"))

    def _reset_call(
        self, name: str, obs: Observation, infos: Info, i: int, role: Role = ""
    ) -> Call:
        info = _info_of(infos, i, self.num_envs)
        return Call(name, (Part("obs", _row(obs, i), role), *_rest(info, "infos")), info)


class _Row:
    """The endings of one row, while the environment runs."""

    def __init__(self, row: int, first: Call, space: Any, seed: int, calls_after: int) -> None:
        self.endings: list[Ending] = []
        self._row = row
        self._before = first
        self._after = calls_after
        self._open: list[tuple[Ending, list[Call]]] = []
        self._length = 0
        self._space = deepcopy(space)
        self._space.seed(seed)
        self._next = self._space.sample()

    @property
    def action(self) -> Action:
        """The action of the row's next transition."""
        return self._next

    def note(self, call: Call) -> None:
        """Note a call; those around an ending are kept, and no other."""
        for _, calls in self._open:
            calls.append(call)
        if call.acted:
            self._length += 1
            self._next = self._space.sample()
        if call.ended:
            number = len(self.endings) + len(self._open) + 1
            ending = Ending(self._row, number, self._length, ())
            self._open.append((ending, [self._before, call]))
            self._length = 0
        self.close(self._after + 2)
        self._before = call

    def close(self, enough: int = 0) -> None:
        """Close the endings that have as many calls as this."""
        while self._open and len(self._open[0][1]) >= enough:
            ending, calls = self._open.pop(0)
            self.endings.append(replace(ending, calls=tuple(calls)))


def endings_of(
    driver: Driver, rows: Sequence[int], *, episodes: int, seed: int, max_steps: int
) -> tuple[Ending, ...]:
    """The ends of episodes in some rows.

    Every row has actions of its own, and takes its k-th action in its k-th transition. So each API
    sees the same transitions, whatever steps it spends on resets.

    Args:
        driver: The environment.
        rows: The rows to note.
        episodes: How many episodes of each row to note.
        seed: The seed of the environment and of the actions.
        max_steps: After how many steps to stop, whether or not all episodes have ended.
    """
    state = [
        _Row(i, call, driver.action_space, seed + i, driver.calls_after)
        for i, call in enumerate(driver.reset(seed))
    ]
    for number in range(1, max_steps + 1):
        for row, calls in zip(
            state, driver.step([row.action for row in state], number), strict=True
        ):
            for call in calls:
                row.note(call)
        if all(len(state[i].endings) >= episodes for i in rows):
            break
    for i in rows:
        state[i].close()
    return tuple(ending for i in rows for ending in state[i].endings[:episodes])


def _batch(space: Any, actions: Sequence[Action]) -> Action:
    # Not None, as the space is one that can be batched.
    out: Any = create_empty_array(space, len(actions), np.empty)
    return concatenate(space, actions, out)


def _row(values: Value, i: int) -> Value:
    """A copy of one row of a batch: an array, or a dict or tuple of them."""
    if isinstance(values, dict):
        return {key: _row(part, i) for key, part in values.items()}
    if isinstance(values, tuple):
        return tuple(_row(part, i) for part in values)
    return deepcopy(to_numpy(values)[i])


def _info_of(infos: Info, i: int, num_envs: int) -> Info:
    """The infos of one row; a value that is no batch is every row's."""
    found: Info = {}
    for key, value in infos.items():
        if key.startswith("_") and mask_of(infos, key[1:], num_envs) is not None:
            continue
        mask = mask_of(infos, key, num_envs)
        if mask is not None and not mask[i]:
            continue
        found[key] = _info_value(value, i, num_envs)
    return found


def _info_value(value: Value, i: int, num_envs: int) -> Value:
    if isinstance(value, dict):
        return _info_of(value, i, num_envs)
    if is_foreign_array(value):
        value = to_numpy(value)
    if isinstance(value, tuple):
        return tuple(_info_value(part, i, num_envs) for part in value)
    is_batch = isinstance(value, list | np.ndarray) and np.shape(value)[:1] == (num_envs,)
    return deepcopy(value[i] if is_batch else value)


def _named(info: Info, key: str, role: Role = "") -> list[Part]:
    return [Part(f"infos[{key!r}]", info[key], role)] if key in info else []


def _rest(info: Info, name: str, *without: str) -> list[Part]:
    rest = {key: value for key, value in info.items() if key not in without}
    return [Part(name, rest)] if rest else []
