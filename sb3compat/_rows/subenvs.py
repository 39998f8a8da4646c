"""Reach single sub-environments: get, set, call, is-wrapped, by index.

Three ways to have sub-environments: as local objects (`SyncVectorEnv`), in worker processes
(`AsyncVectorEnv`), or not at all (natively vectorised environments, which answer as a whole).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.vector.utils import iterate

from sb3compat._convert.arrays import is_foreign_array, to_numpy
from sb3compat._convert.types import (
    AnyAsync,
    AnyVectorEnv,
    ClassInfo,
    HoldsVecEnv,
    Indices,
    Kwargs,
    SingleEnv,
    SubEnvs,
    Value,
    holds_vec_env,
)
from sb3compat._ipc import async_vector_env as workers
from sb3compat._rows.commands import call_env
from sb3compat._upstream.inherited import changed
from sb3compat.errors import shown


def resolve_indices(indices: Indices, num_envs: int) -> list[int]:
    """The rows meant by `indices`, in the order given.

    Args:
        indices: None for all rows, an int (negative ones count from the end), or any iterable of
            ints.
        num_envs: The number of rows, n.

    Raises:
        TypeError: If an index is not an integer.
        IndexError: If an index is outside `[-n, n)`.
    """
    if indices is None:
        return list(range(num_envs))
    single = np.ndim(indices) == 0 and not isinstance(indices, Iterable)  # type: ignore[arg-type]
    listed: Iterable[Any] = [indices] if single else indices  # type: ignore[assignment]
    wanted = [operator.index(i) for i in listed]
    for i in wanted:
        if not -num_envs <= i < num_envs:
            raise IndexError(
                f"Expected indices in [-{num_envs}, {num_envs}), the number of sub-environments "
                f"being {num_envs}, got {i}."
            )
    return [i % num_envs for i in wanted]


def is_wrapped(env: SingleEnv, wrapper_class: ClassInfo) -> bool:
    """Whether a wrapper of that class is anywhere around the environment."""
    while isinstance(env, gym.Wrapper):
        if isinstance(env, wrapper_class):
            return True
        env = env.env
    return False


class LocalSubEnvs:
    """Sub-environments that are objects in this process."""

    def __init__(self, envs: list[SingleEnv]) -> None:
        self.envs = envs

    def has(self, name: str, rows: list[int]) -> list[bool]:
        """Whether each row has the attribute, on any wrapper."""
        return [self.envs[i].has_wrapper_attr(name) for i in rows]

    def get(self, name: str, rows: list[int]) -> list[Value]:
        """The attribute of each row, from the outermost wrapper that has it."""
        return [self.envs[i].get_wrapper_attr(name) for i in rows]

    def set(self, name: str, value: object, rows: list[int]) -> None:
        """Set the attribute on the outermost wrapper of each row, as SB3 does."""
        for i in rows:
            setattr(self.envs[i], name, value)

    def call(
        self, name: str, args: tuple[Value, ...], kwargs: Kwargs, rows: list[int]
    ) -> list[Value]:
        """Call the method of each row."""
        return [self.envs[i].get_wrapper_attr(name)(*args, **kwargs) for i in rows]

    def read(
        self, name: str, args: tuple[Value, ...], kwargs: Kwargs, rows: list[int]
    ) -> list[Value]:
        """The attribute of each row; called if it is a method."""
        return [call_env(self.envs[i], name, args, kwargs) for i in rows]

    def is_wrapped(self, wrapper_class: ClassInfo, rows: list[int]) -> list[bool]:
        """Whether each row is wrapped in that class."""
        return [is_wrapped(self.envs[i], wrapper_class) for i in rows]


class RemoteSubEnvs:
    """Sub-environments in the workers of an `AsyncVectorEnv`; only the rows named are asked.

    `AsyncVectorEnv.call` asks all workers, and a worker that does not have the attribute dies of
    the `AttributeError`. So each worker is asked first whether it has the attribute.
    """

    def __init__(self, env: AnyAsync) -> None:
        self.env = env
        workers.mend_errors(env)

    def get(self, name: str, rows: list[int]) -> list[Value]:
        """The attribute of each row, from the outermost wrapper that has it."""
        self._check(name, rows)
        return workers.call(self.env, "get_wrapper_attr", (name,), {}, rows)

    def set(self, name: str, value: Value, rows: list[int]) -> None:
        """Set the attribute on the outermost wrapper of each row, as SB3 does."""
        workers.call(self.env, "__setattr__", (name, value), {}, rows)

    def call(
        self, name: str, args: tuple[Value, ...], kwargs: Kwargs, rows: list[int]
    ) -> list[Value]:
        """Call the method of each row, in parallel."""
        if name == "reset" and not args:
            return self._reset(kwargs, rows)
        if name in _COMMANDS:
            raise ValueError(
                f"Expected a method that the workers of {self.env} can call, got {name!r}, which "
                f"they take for a command. Use {name}() of the vector environment."
            )
        self._check(name, rows)
        return workers.call(self.env, name, args, kwargs, rows)

    # What a worker of Gymnasium's does in any case.
    read = call

    def _reset(self, kwargs: Kwargs, rows: list[int]) -> list[tuple[Value, Value]]:
        chosen = list(dict.fromkeys(rows))
        results = dict(
            zip(chosen, workers.reset(self.env, chosen, [kwargs] * len(chosen)), strict=True)
        )
        if workers.shares_memory(self.env):
            shared = list(iterate(self.env.observation_space, workers.shared_batch(self.env)))
            results = {i: (deepcopy(shared[i]), info) for i, (_, info) in results.items()}
        return [results[i] for i in rows]

    def is_wrapped(self, wrapper_class: ClassInfo, rows: list[int]) -> list[bool]:
        """Whether each row is wrapped in that class."""
        return workers.is_wrapped(self.env, wrapper_class, rows)

    def has(self, name: str, rows: list[int]) -> list[bool]:
        """Whether each row has the attribute. Its value is not sent: it may not be picklable."""
        return workers.call(self.env, "has_wrapper_attr", (name,), {}, rows)

    def _check(self, name: str, rows: list[int]) -> None:
        found = self.has(name, rows)
        missing = [i for i, has in zip(rows, found, strict=True) if not has]
        if missing:
            raise AttributeError(f"The sub-environments of rows {shown(missing)} have no {name!r}.")


class NoSubEnvs:
    """A vector environment that answers for all of its rows at once."""

    def __init__(self, env: AnyVectorEnv) -> None:
        self.env = env

    def has(self, name: str, rows: list[int]) -> list[bool]:
        """Whether the vector environment has the attribute."""
        try:
            self._owner(name)
        except AttributeError:
            return [False for _ in rows]
        return [True for _ in rows]

    def get(self, name: str, rows: list[int]) -> list[Value]:
        """The attribute of the vector environment, for every row."""
        value = getattr(self._owner(name), name)
        return [value for _ in rows]

    def set(self, name: str, value: object, rows: list[int]) -> None:
        """Set the attribute of the vector environment, which all rows share."""
        self._check_all(name, rows)
        setattr(self._owner(name, default=self.env), name, value)

    def call(
        self, name: str, args: tuple[Value, ...], kwargs: Kwargs, rows: list[int]
    ) -> list[Value]:
        """Call the method once; a batch of n is split by row, anything else is for every row.

        `has_wrapper_attr`, `get_wrapper_attr` and `set_wrapper_attr`, which a `gymnasium.Env` has
        and a `VectorEnv` has not, are answered here.
        """
        if name in _WRAPPER_ATTR and not all(self.has(name, rows)):
            return _WRAPPER_ATTR[name](self, rows, *args, **kwargs)
        if name in _COMMANDS:
            raise ValueError(
                f"Expected a method of single rows, got {name!r} of {self.env}, which is "
                f"vectorised natively. Use {name}() of the vector environment."
            )
        if name not in _OF_ARGUMENTS:
            self._check_all(name, rows)
        n = self.env.num_envs
        result = getattr(self._owner(name), name)(*args, **kwargs)
        if is_foreign_array(result):
            result = to_numpy(result)
        if name in _OF_ARGUMENTS:
            return [result for _ in rows]
        if isinstance(result, np.ndarray | list | tuple) and len(result) == n:
            return [result[i] for i in rows]
        return [result for _ in rows]

    def read(
        self, name: str, args: tuple[Value, ...], kwargs: Kwargs, rows: list[int]
    ) -> list[Value]:
        """The attribute; called if it is a method."""
        is_method = callable(getattr(self._owner(name), name))
        return self.call(name, args, kwargs, rows) if is_method else self.get(name, rows)

    def is_wrapped(self, wrapper_class: ClassInfo, rows: list[int]) -> list[bool]:
        """False for each row: there are no sub-environments that could be wrapped."""
        return [False for _ in rows]

    def _owner(self, name: str, default: Any = None) -> Any:
        env: Any = self.env
        while True:
            if name in vars(env) or hasattr(type(env), name):
                return env
            if not hasattr(env, "env"):
                break
            env = env.env
        if default is None:
            raise AttributeError(
                f"{self.env} has no {name!r}, and no sub-environments of its own to ask for it."
            )
        return default

    def _check_all(self, name: str, rows: list[int]) -> None:
        if set(rows) != set(range(self.env.num_envs)):
            raise ValueError(
                f"Expected indices=None for {name!r}: {self.env} is vectorised natively, its rows "
                f"have no environments of their own, got the rows {shown(rows)}."
            )


# Gymnasium's worker takes these names for commands. In a natively vectorised environment, these
# methods concern all rows.
_COMMANDS = ("reset", "step", "close")

# By the contract of goal environments, these depend on their arguments alone, which are a batch
# from a replay buffer and not one for each row.
_OF_ARGUMENTS = ("compute_reward", "compute_terminated", "compute_truncated")


def _has_wrapper_attr(env: NoSubEnvs, rows: list[int], name: str) -> list[bool]:
    return env.has(name, rows)


def _get_wrapper_attr(env: NoSubEnvs, rows: list[int], name: str) -> list[Value]:
    return env.get(name, rows)


def _set_wrapper_attr(
    env: NoSubEnvs, rows: list[int], name: str, value: Value, *, force: bool = True
) -> list[bool]:
    if not force and not all(env.has(name, rows)):
        return [False for _ in rows]
    env.set(name, value, rows)
    return [True for _ in rows]


# SB3 recommends `env_method("get_wrapper_attr", "x")` and `env_method("set_wrapper_attr", "x", 1)`.
_WRAPPER_ATTR: dict[str, Callable[..., list[Value]]] = {
    "has_wrapper_attr": _has_wrapper_attr,
    "get_wrapper_attr": _get_wrapper_attr,
    "set_wrapper_attr": _set_wrapper_attr,
}


# What reaches the sub-environments of an adapter to Gymnasium, unless a subclass overrides it.
_REACHING = ("call", "get_attr", "set_attr", "subenvs")


def subenvs_of(env: AnyVectorEnv) -> SubEnvs:
    """How to reach the sub-environments of a vector environment."""
    base = env.unwrapped
    if isinstance(base, SyncVectorEnv):
        return LocalSubEnvs(base.envs)
    if isinstance(base, AsyncVectorEnv):
        return RemoteSubEnvs(base)
    if holds_vec_env(base) and changed(base, HoldsVecEnv, *_REACHING) is None:
        return base.subenvs
    return NoSubEnvs(env)
