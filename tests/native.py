"""A natively vectorised environment as third parties write them, in every form they choose."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

import sb3compat
from tests.envs import MakeEnv


@dataclass(frozen=True)
class Form:
    """The form of the environment's results."""

    library: str = "numpy"  # or "torch", "jax": of observations, rewards and flags
    changes: bool = False  # whether arrays of NumPy are of another form now and then
    final_key: str = "final_obs"  # or "final_observation", as it was called before
    final: str = "object"  # an object array; "dense" for a batch of all rows; "list"
    final_mask: bool = True
    final_info: str = "arrays"  # or "dicts": an object array of dicts


class UnknownEnv(VectorEnv[Any, Any, Any]):
    """Reuses its arrays from step to step, takes one seed, and shows no sub-environments."""

    def __init__(
        self, env_fns: list[MakeEnv], mode: AutoresetMode | None, form: Form | None = None
    ) -> None:
        self._rows = [fn() for fn in env_fns]
        self.num_envs = n = len(self._rows)
        self.form = form or Form()
        self.mode = mode
        self.metadata = {} if mode is None else {"autoreset_mode": mode}
        self.single_observation_space = self._rows[0].observation_space
        self.single_action_space = self._rows[0].action_space
        self.observation_space = batch_space(self.single_observation_space, n)
        self.action_space = batch_space(self.single_action_space, n)
        self._batch = create_empty_array(self.single_observation_space, n)
        self._rewards = np.zeros(n)
        self._flags = np.zeros((2, n), np.bool_)
        self.pending = np.zeros(n, np.bool_)
        self.colour = "blue"
        self._turn = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        options = dict(options or {})
        mask = options.pop("reset_mask", np.ones(self.num_envs, np.bool_))
        return self.reset_rows(mask, seed, options)

    def reset_rows(
        self, mask: Any, seed: int | None, options: dict[str, Any] | None
    ) -> tuple[Any, dict[str, Any]]:
        infos: dict[str, Any] = {}
        for i in np.flatnonzero(mask):
            row_seed = None if seed is None else seed + int(i)
            given = {"options": options} if options else {}
            obs, info = self._rows[i].reset(seed=row_seed, **given)
            self._put(i, obs)
            infos = self._add_info(infos, deepcopy(info), i)
        self.pending[mask] = False
        return self._out(self._batch), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        infos: dict[str, Any] = {}
        finals: dict[int, tuple[Any, dict[str, Any]]] = {}
        for i, action in enumerate(iterate(self.action_space, actions)):
            if self.pending[i]:
                assert self.mode != AutoresetMode.DISABLED, "stepped after the end"
                obs, info = self._rows[i].reset()
                self._rewards[i], self._flags[:, i] = 0, False
            else:
                obs, reward, terminated, truncated, info = self._rows[i].step(action)
                self._rewards[i], self._flags[:, i] = reward, (terminated, truncated)
            self.pending[i] = self._flags[:, i].any()
            if self.pending[i] and self.mode == AutoresetMode.SAME_STEP:
                finals[i] = deepcopy((obs, info))
                obs, info = self._rows[i].reset()
                self.pending[i] = False
            self._put(i, obs)
            infos = self._add_info(infos, deepcopy(info), i)
        if finals:
            infos.update(self._finals(finals))
        flags = self._flags
        return (
            self._out(self._batch),
            self._out(self._rewards),
            self._out(flags[0]),
            self._out(flags[1]),
            infos,
        )

    def paint(self, colour: str) -> list[str]:
        return [f"{colour} {i}" for i in range(self.num_envs)]

    def _put(self, row: int, obs: Any) -> None:
        held = list(iterate(self.observation_space, self._batch))
        held = [deepcopy(part) for part in held]
        held[row] = obs
        concatenate(self.single_observation_space, held, self._batch)

    def _out(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._out(part) for key, part in value.items()}
        if isinstance(value, tuple):
            return tuple(self._out(part) for part in value)
        if self.form.library == "torch":
            import torch

            return torch.from_numpy(value)  # shares its memory, as torch environments do
        if self.form.library == "jax" and value.dtype.itemsize < 8:  # JAX is 32 bit by default
            import jax.numpy as jnp

            return jnp.asarray(value)
        self._turn += 1
        if self.form.changes and self._turn % 3 == 0:
            if value.ndim == 1:
                return value.tolist()
            return value.astype(np.float64) if value.dtype == np.float32 else value
        return value

    def _finals(self, finals: dict[int, tuple[Any, dict[str, Any]]]) -> dict[str, Any]:
        n, form = self.num_envs, self.form
        mask = np.array([i in finals for i in range(n)])
        obs = np.full(n, None, dtype=object)
        infos = np.full(n, None, dtype=object)
        arrays: dict[str, Any] = {}
        for i, (final, info) in finals.items():
            obs[i], infos[i] = final, info
            arrays = self._add_info(arrays, info, i)
        out: dict[str, Any] = {form.final_key: obs}
        if form.final == "list":
            out[form.final_key] = list(obs)
        elif form.final == "dense":
            held = list(iterate(self.observation_space, self._batch))
            filled = [finals[i][0] if i in finals else held[i] for i in range(n)]
            empty = create_empty_array(self.single_observation_space, n)
            dense = concatenate(self.single_observation_space, filled, empty)
            out[form.final_key] = self._out(dense)
            if isinstance(out[form.final_key], list):  # of Python's numbers: a form of its own
                out[form.final_key] = dense
        out["final_info"] = arrays if form.final_info == "arrays" else infos
        if form.final_mask:
            out |= {f"_{form.final_key}": mask, "_final_info": mask}
        return out


class NativeEnv(UnknownEnv):
    """The same, with a registered partial reset."""


@sb3compat.register_partial_reset(NativeEnv)
def reset_native(
    env: NativeEnv, mask: Any, *, seed: Any = None, options: dict[str, Any] | None = None
) -> tuple[Any, dict[str, Any]]:
    return env.reset_rows(mask, seed, options)


class RestartsRows(NativeEnv):
    """The same, with a restart that returns the ended rows only."""


class Restart:
    """Resets the rows of a mask, or restarts rows and returns no others."""

    def __call__(self, env: RestartsRows, mask: Any) -> tuple[Any, dict[str, Any]]:
        return env.reset_rows(mask, None, None)

    def restart_rows(self, env: RestartsRows, rows: Any) -> tuple[Any, dict[str, Any]]:
        mask = np.isin(np.arange(env.num_envs), rows)
        obs, infos = env.reset_rows(mask, None, None)
        return np.asarray(obs)[rows], {key: _part(value, rows) for key, value in infos.items()}


def _part(value: Any, rows: Any) -> Any:
    if isinstance(value, dict):
        return {key: _part(inner, rows) for key, inner in value.items()}
    return value[rows]


sb3compat.register_partial_reset(RestartsRows, Restart())
