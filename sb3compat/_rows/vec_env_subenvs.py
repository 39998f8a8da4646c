"""Reach the sub-environments of a `VecEnv`, as SB3 does and as Gymnasium does.

Sub-environments are local objects, or live in workers, or are behind the methods of a `VecEnv` of
any class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from sb3compat._convert import types
from sb3compat._convert.options import same_value
from sb3compat._convert.types import (
    ClassInfo,
    Indices,
    Kwargs,
    OwnVecEnv,
    RowCommands,
    SingleEnv,
    Value,
    inherits_own,
    is_own_vec_env,
)
from sb3compat._rows.commands import call_env, set_env
from sb3compat._upstream.vec_env import inherits, overrides_only


class SubEnvs(types.SubEnvs, Protocol):
    """How to reach the sub-environments."""

    def write(self, name: str, values: Sequence[Value]) -> None:
        """Set the attribute as Gymnasium does, one value for each row."""


class MethodEnvs:
    """Behind the methods of a `VecEnv`.

    Args:
        vec_env: The environment, with its wrappers.
    """

    def __init__(self, vec_env: Any) -> None:
        self._vec_env = vec_env
        self._own = _own_base(vec_env)

    def has(self, name: str, rows: list[int]) -> list[bool]:
        """Whether every row has the attribute, which is all that a `VecEnv` tells."""
        return [bool(self._method("has_attr")(name))] * len(rows)

    def get(self, name: str, rows: list[int]) -> list[Value]:
        """The attribute of each row, from the outermost wrapper that has it."""
        return list(self._method("get_attr")(name, indices=self._indices(rows)))

    def set(self, name: str, value: Value, rows: list[int]) -> None:
        """Set the attribute on the outermost wrapper of each row."""
        self._method("set_attr")(name, value, indices=self._indices(rows))

    def call(
        self, name: str, args: tuple[Value, ...], kwargs: Kwargs, rows: list[int]
    ) -> list[Value]:
        """Call the method of each row."""
        method = self._method("env_method")
        return list(method(name, *args, indices=self._indices(rows), **kwargs))

    def read(
        self, name: str, args: tuple[Value, ...], kwargs: Kwargs, rows: list[int]
    ) -> list[Value]:
        """What `env_method` returns or, where the attribute is no method, `get_attr`."""
        if self._own is not None:  # a method of a worker's environment cannot always be sent
            return self._own.read(name, *args, indices=rows, **kwargs)
        if not args and not kwargs:
            values = self.get(name, rows)
            if not all(map(callable, values)):
                return values
        return self.call(name, args, kwargs, rows)

    def is_wrapped(self, wrapper_class: ClassInfo, rows: list[int]) -> list[bool]:
        """Whether each row is wrapped in that class."""
        return list(self._method("env_is_wrapped")(wrapper_class, indices=self._indices(rows)))

    def write(self, name: str, values: Sequence[Value]) -> None:
        """Set the attribute on the wrapper that has it or, if that fails, by `set_attr`.

        One value for all rows is set by one call: rows that share an attribute have no other way.
        """
        if all(_is_same(value, values[0]) for value in values):
            self._write(name, values[0], {})
            return
        for i, value in enumerate(values):
            self._write(name, value, {"indices": [i]})

    def _write(self, name: str, value: object, rows: Kwargs) -> None:
        if overrides_only(self._vec_env, "set_attr", "env_method"):
            self._method("set_attr")(name, value, **rows)
            return
        try:
            self._method("env_method")("set_wrapper_attr", name, value, **rows)
        except (AttributeError, NotImplementedError, TypeError):
            self._method("set_attr")(name, value, **rows)

    def _indices(self, rows: list[int]) -> Indices:
        return None if rows == list(range(self._vec_env.num_envs)) else rows

    def _method(self, name: str) -> Any:
        try:
            return getattr(self._vec_env, name)
        except AttributeError as error:
            raise AttributeError(
                f"{self._vec_env} has no method {name!r}, by which its sub-environments could be "
                "reached."
            ) from error


class LocalEnvs(MethodEnvs):
    """Objects in this process.

    Args:
        vec_env: The environment.
        envs: The sub-environments, in the list in which rows may be replaced.
    """

    def __init__(self, vec_env: Any, envs: Sequence[SingleEnv]) -> None:
        super().__init__(vec_env)
        self._envs = envs

    def read(
        self, name: str, args: tuple[Value, ...], kwargs: Kwargs, rows: list[int]
    ) -> list[Value]:
        """The attribute of each row, from the outermost wrapper that has it; called if it can."""
        return [call_env(self._envs[i], name, args, kwargs) for i in rows]

    def write(self, name: str, values: Sequence[Value]) -> None:
        """Set the attribute on the wrapper that has it, one value for each row."""
        for env, value in zip(self._envs, values, strict=True):
            set_env(env, name, value)


class WorkerEnvs(MethodEnvs):
    """In the workers of a `SubprocVecEnv` or `ParallelVecEnv`.

    By commands, after whose exceptions a worker of SB3's goes on, as it does not after others.

    Args:
        vec_env: The environment.
        workers: Speaks to its workers.
    """

    def __init__(self, vec_env: Any, workers: RowCommands) -> None:
        super().__init__(vec_env)
        self._workers = workers

    def has(self, name: str, rows: list[int]) -> list[bool]:
        """Whether each row has the attribute. Its value is not sent."""
        return self.read("has_wrapper_attr", (name,), {}, rows)

    def get(self, name: str, rows: list[int]) -> list[Value]:
        """The attribute of each row, from the outermost wrapper that has it."""
        return self.read("get_wrapper_attr", (name,), {}, rows)

    def set(self, name: str, value: Value, rows: list[int]) -> None:
        """Set the attribute on the outermost wrapper of each row."""
        self.read("__setattr__", (name, value), {}, rows)

    def call(
        self, name: str, args: tuple[Value, ...], kwargs: Kwargs, rows: list[int]
    ) -> list[Value]:
        """Call the method of each row, in parallel."""
        return self.read(name, args, kwargs, rows)

    def read(
        self, name: str, args: tuple[Value, ...], kwargs: Kwargs, rows: list[int]
    ) -> list[Value]:
        """As `LocalEnvs`, in parallel."""
        answers = self._workers.ask(dict.fromkeys(rows, ("call", name, args, kwargs)))
        return [answers[row] for row in rows]

    def write(self, name: str, values: Sequence[Value]) -> None:
        """As `LocalEnvs`, in parallel."""
        self._workers.ask({i: ("set", name, value) for i, value in enumerate(values)})


def inherits_to_base(vec_env: Any, method: str) -> bool:
    """Whether this method is SB3's own in all wrappers; and in the base, or that of `to_sb3`."""
    while hasattr(vec_env, "venv"):
        if not inherits(vec_env, method):
            return False
        vec_env = vec_env.venv
    return inherits_own(vec_env, method) or inherits(vec_env, method)


def _own_base(vec_env: Any) -> OwnVecEnv | None:
    """The `VecEnv` of this package inside, if its rows are reached by its own methods."""
    base = getattr(vec_env, "unwrapped", vec_env)
    if not is_own_vec_env(base):
        return None
    reached = all(inherits_to_base(vec_env, name) for name in ("get_attr", "env_method"))
    return base if reached and inherits_own(base, "read") else None


def local_envs(vec_env: Any) -> Sequence[SingleEnv]:
    """The sub-environments that a `VecEnv`, or the one inside its wrappers, has in this process.

    Raises:
        AttributeError: If it has none there.
    """
    try:
        envs: Sequence[SingleEnv] = getattr(vec_env, "unwrapped", vec_env).envs
    except AttributeError as error:
        raise AttributeError(
            f"{vec_env} has no sub-environments in this process. Use call, get_attr and set_attr."
        ) from error
    return envs


def _is_same(a: Value, b: Value) -> bool:
    """Whether it makes no difference which of the two is set."""
    return a is b or (isinstance(a, bool | int | float | str | bytes) and same_value(a, b))
