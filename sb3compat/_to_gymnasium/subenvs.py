"""Reach the sub-environments of a `VecEnv` as Gymnasium does: call, set, for all rows.

Sub-environments are local objects, or live in workers, or are behind the methods of a `VecEnv` of
any class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from sb3compat._convert.options import same_value
from sb3compat._convert.types import Kwargs, RowCommands, SingleEnv, Value
from sb3compat._upstream.vec_env import overrides_only
from sb3compat._upstream.worker_guard import call_env, set_env


class SubEnvs(Protocol):
    """How to reach the sub-environments."""

    def call(self, name: str, args: tuple[Value, ...], kwargs: Kwargs) -> list[Value]:
        """The attribute of each row; called, where it can be."""

    def set(self, name: str, values: Sequence[Value]) -> None:
        """Set the attribute, one value for each row."""


class LocalEnvs:
    """Objects in this process."""

    def __init__(self, envs: Sequence[SingleEnv]) -> None:
        self._envs = envs

    def call(self, name: str, args: tuple[Value, ...], kwargs: Kwargs) -> list[Value]:
        """The attribute of each row, from the outermost wrapper that has it; called if it can."""
        return [call_env(env, name, args, kwargs) for env in self._envs]

    def set(self, name: str, values: Sequence[Value]) -> None:
        """Set the attribute on the wrapper that has it, one value for each row."""
        for env, value in zip(self._envs, values, strict=True):
            set_env(env, name, value)


class WorkerEnvs:
    """In the workers of a `SubprocVecEnv` or `ParallelVecEnv`."""

    def __init__(self, workers: RowCommands) -> None:
        self._workers = workers

    def call(self, name: str, args: tuple[Value, ...], kwargs: Kwargs) -> list[Value]:
        """As `LocalEnvs`, in parallel."""
        rows = range(self._workers.num_envs)
        return list(self._workers.ask(dict.fromkeys(rows, ("call", name, args, kwargs))).values())

    def set(self, name: str, values: Sequence[Value]) -> None:
        """As `LocalEnvs`, in parallel."""
        self._workers.ask({i: ("set", name, value) for i, value in enumerate(values)})


class MethodEnvs:
    """Behind the methods of a `VecEnv`."""

    def __init__(self, vec_env: Any) -> None:
        self._vec_env = vec_env

    def call(self, name: str, args: tuple[Value, ...], kwargs: Kwargs) -> list[Value]:
        """What `env_method` returns or, where the attribute is no method, `get_attr`."""
        if not args and not kwargs:
            values = list(self._method("get_attr")(name))
            if not all(map(callable, values)):
                return values
        return list(self._method("env_method")(name, *args, **kwargs))

    def set(self, name: str, values: Sequence[Value]) -> None:
        """Set the attribute on the wrapper that has it or, if that fails, by `set_attr`.

        One value for all rows is set by one call: rows that share an attribute have no other way.
        """
        if all(_is_same(value, values[0]) for value in values):
            self._set(name, values[0], {})
            return
        for i, value in enumerate(values):
            self._set(name, value, {"indices": [i]})

    def _set(self, name: str, value: object, rows: Kwargs) -> None:
        if overrides_only(self._vec_env, "set_attr", "env_method"):
            self._method("set_attr")(name, value, **rows)
            return
        try:
            self._method("env_method")("set_wrapper_attr", name, value, **rows)
        except (AttributeError, NotImplementedError, TypeError):
            self._method("set_attr")(name, value, **rows)

    def _method(self, name: str) -> Any:
        try:
            return getattr(self._vec_env, name)
        except AttributeError as error:
            raise AttributeError(
                f"{self._vec_env} has no method {name!r}, by which its sub-environments could be "
                "reached."
            ) from error


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
