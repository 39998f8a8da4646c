"""An environment with each API: the results of `reset` and `step`, by row."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import concatenate, create_empty_array

from sb3compat._convert.arrays import to_numpy
from sb3compat._convert.split_infos import split_infos
from sb3compat._convert.types import Action, AnyVectorEnv, Info, Observation
from sb3compat._trace.record import Call, CallValue, Role


class PresentedVecEnv:
    """A `VecEnv`, or an object with its methods.

    Attributes:
        num_envs: The number of rows.
        action_space: The space of one action.
        calls_after: How many calls after an ending are needed to see the start of the next episode.
    """

    calls_after = 1

    def __init__(self, env: Any) -> None:
        self._env = env
        self.num_envs: int = env.num_envs
        self.action_space = env.action_space

    def reset(self, seed: int) -> list[Call]:
        """Seed all rows, and reset them; returns one call for each."""
        seeding = getattr(self._env, "seed", None)
        if callable(seeding):
            seeding(seed)
        obs = self._env.reset()
        infos = deepcopy(list(getattr(self._env, "reset_infos", [])))
        infos += [{} for _ in range(self.num_envs - len(infos))]
        return [
            Call("reset", (CallValue("obs", _row(obs, i)), *_rest(info, "reset_infos")), info)
            for i, info in enumerate(infos)
        ]

    def step(self, actions: Sequence[Action], number: int) -> list[list[Call]]:
        """Step all rows; a row that is done is at the start of its next episode.

        Returns:
            The calls of each row: one, as a `VecEnv` resets the row in the same call.
        """
        obs, rewards, dones, infos = self._env.step(_batch(self.action_space, actions))
        resets = getattr(self._env, "reset_infos", [{}] * self.num_envs)
        calls = []
        for i in range(self.num_envs):
            done, info = bool(dones[i]), deepcopy(infos[i])
            values = [
                CallValue("action", actions[i]),
                CallValue("obs", _row(obs, i), "first" if done else ""),
                CallValue("reward", rewards[i]),
                CallValue("done", done),
                *_named(info, "terminal_observation", "final"),
                *_named(info, "TimeLimit.truncated"),
                *_rest(info, "infos", "terminal_observation", "TimeLimit.truncated"),
            ]
            if done and len(resets) > i:
                values += _rest(deepcopy(resets[i]), "reset_infos")
            calls.append([Call(f"step {number}", tuple(values), info, done, acted=True)])
        return calls


class PresentedVectorEnv:
    """A `VectorEnv` in an autoreset mode; the attributes are those of `PresentedVecEnv`."""

    def __init__(self, env: AnyVectorEnv, mode: AutoresetMode) -> None:
        self._env = env
        self._mode = mode
        self._ended: list[bool] = []
        self.num_envs = env.num_envs
        self.action_space = env.single_action_space
        self.calls_after = 1 if mode == AutoresetMode.SAME_STEP else 2

    def reset(self, seed: int) -> list[Call]:
        """Reset all rows; returns one call for each."""
        obs, infos = self._env.reset(seed=seed)
        self._ended = [False] * self.num_envs
        return self._reset_calls("reset", obs, infos)

    def step(self, actions: Sequence[Action], number: int) -> list[list[Call]]:
        """Step all rows; in DISABLED mode, reset those that ended, as a user has to.

        Returns:
            The calls of each row: two where it had to be reset.
        """
        obs, rewards, terminations, truncations, infos = self._env.step(
            _batch(self.action_space, actions)
        )
        calls = []
        for i, info in enumerate(split_infos(infos, self.num_envs)):
            flags = {"terminated": bool(terminations[i]), "truncated": bool(truncations[i])}
            resets = self._mode == AutoresetMode.NEXT_STEP and self._ended[i]
            self._ended[i] = any(flags.values()) and not resets
            values = (
                CallValue("action (ignored)" if resets else "action", actions[i]),
                CallValue("obs", _row(obs, i), self._role(self._ended[i], resets)),
                CallValue("reward", rewards[i]),
                *(CallValue(name, flag) for name, flag in flags.items()),
                *_named(info, "final_obs", "final"),
                *_named(info, "final_info"),
                *_rest(info, "infos", "final_obs", "final_info"),
            )
            calls.append([Call(f"step {number}", values, info, self._ended[i], acted=not resets)])
        if self._mode == AutoresetMode.DISABLED and any(self._ended):
            self._reset_ended(calls)
        return calls

    def _role(self, ended: bool, resets: bool) -> Role:
        if resets:
            return "first"
        if not ended:
            return ""
        return "first" if self._mode == AutoresetMode.SAME_STEP else "final"

    def _reset_ended(self, calls: list[list[Call]]) -> None:
        mask = np.array(self._ended)
        obs, infos = self._env.reset(options={"reset_mask": mask.copy()})
        resets = self._reset_calls("reset of the row", obs, infos, "first")
        for i in map(int, np.flatnonzero(mask)):
            calls[i].append(resets[i])

    def _reset_calls(self, name: str, obs: Observation, infos: Info, role: Role = "") -> list[Call]:
        return [
            Call(name, (CallValue("obs", _row(obs, i), role), *_rest(info, "infos")), info)
            for i, info in enumerate(split_infos(infos, self.num_envs))
        ]


Presented = PresentedVecEnv | PresentedVectorEnv


def _batch(space: Any, actions: Sequence[Action]) -> Action:
    # Not None, as the space is one that can be batched.
    out: Any = create_empty_array(space, len(actions), np.empty)
    return concatenate(space, actions, out)


def _row(values: Any, i: int) -> Any:
    """A copy of one row of a batch: an array, or a dict or tuple of them."""
    if isinstance(values, dict):
        return {key: _row(each, i) for key, each in values.items()}
    if isinstance(values, tuple):
        return tuple(_row(each, i) for each in values)
    return deepcopy(to_numpy(values)[i])


def _named(info: Info, key: str, role: Role = "") -> list[CallValue]:
    return [CallValue(f"infos[{key!r}]", info[key], role)] if key in info else []


def _rest(info: Info, name: str, *without: str) -> list[CallValue]:
    rest = {key: value for key, value in info.items() if key not in without}
    return [CallValue(name, rest)] if rest else []
