"""Access the sub-environments of a `VecEnv`: by its methods or, if equivalent, directly."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sb3compat._convert.types import (
    Command,
    Indices,
    Kwargs,
    OwnVecEnv,
    SingleEnv,
    SubEnvs,
    inherits_own,
    is_own_vec_env,
)
from sb3compat._ipc.subproc_vec_env import GuardedWorkers
from sb3compat._rows.commands import WrapperClass, run_command
from sb3compat._rows.subenvs import LocalSubEnvs, WorkerSubEnvs, answered_by
from sb3compat._upstream.vec_env import inherits, layers_of, overrides_only, reaches_rows_as
from sb3compat.errors import shown


class MethodSubEnvs:
    """The sub-environments of a `VecEnv` of any class, accessed by its methods.

    Args:
        vec_env: The environment, with its wrappers.
    """

    def __init__(self, vec_env: Any) -> None:
        self._vec_env = vec_env
        self._own = _own_base(vec_env)
        *_, base = layers_of(vec_env)
        self._workers = _workers_of(base)

    def ask(self, command: Command, rows: Sequence[int]) -> list[Any]:
        """The results of the methods of the `VecEnv` for these rows.

        Raises:
            AttributeError: If it has no such method, or a row no such attribute.
        """
        if len(set(rows)) < len(rows):  # a worker of `SubprocVecEnv` owes one answer at a time
            return [answer for row in rows for answer in self.ask(command, [row])]
        return answered_by(self, command, rows)

    def _has(self, rows: Sequence[int], name: str) -> list[bool]:
        """Whether every row has the attribute; a `VecEnv` does not tell it for single rows."""
        return [bool(self._method("has_attr")(name))] * len(rows)

    def _get(self, rows: Sequence[int], name: str) -> list[Any]:
        return list(self._method("get_attr")(name, indices=self._indices(rows)))

    def _set(self, rows: Sequence[int], name: str, value: Any) -> list[None]:
        self._method("set_attr")(name, value, indices=self._indices(rows))
        return [None] * len(rows)

    def _write(self, rows: Sequence[int], name: str, value: Any) -> list[Any]:
        """Set the attribute on the wrapper that has it or, where none can be asked, by `set_attr`.

        Where all wrappers can be asked, an error is the answer of a sub-environment: `set_attr`
        would put the value that it has refused on its outermost wrapper, where `get_attr` finds it.
        """
        if overrides_only(self._vec_env, "set_attr", "env_method"):
            return self._set(rows, name, value)
        try:
            return self._call(rows, "set_wrapper_attr", (name, value), {})
        except NotImplementedError:
            return self._set(rows, name, value)
        except (AttributeError, TypeError):
            if self._all_have("set_wrapper_attr"):
                raise
            return self._set(rows, name, value)

    def _all_have(self, name: str) -> bool:
        with suppress(AttributeError, NotImplementedError):
            return bool(self._method("has_attr")(name))
        return False

    def _call(
        self, rows: Sequence[int], name: str, args: tuple[Any, ...], kwargs: Kwargs
    ) -> list[Any]:
        method = self._method("env_method")
        taken = {"indices", "method_name"} & kwargs.keys()
        if taken:
            raise TypeError(
                f"Expected no keyword argument {shown(taken.pop())} for {name!r}, as env_method of "
                f"{self._vec_env} takes one of that name itself. Pass it by its place."
            )
        return list(method(name, *args, indices=self._indices(rows), **kwargs))

    def _read(
        self, rows: Sequence[int], name: str, args: tuple[Any, ...], kwargs: Kwargs
    ) -> list[Any]:
        """What `env_method` returns or, where the attribute is no method, `get_attr`."""
        if self._own is not None:  # a method of a worker's environment cannot always be sent
            return self._own.read(name, *args, indices=rows, **kwargs)
        if not args and not kwargs:
            if self._workers is not None:
                if not self._are_methods(self._workers, rows, name):
                    return self._get(rows, name)
            elif not all(map(callable, values := self._get(rows, name))):
                return values
        return self._call(rows, name, args, kwargs)

    def _are_methods(self, workers: WorkerSubEnvs, rows: Sequence[int], name: str) -> bool:
        """Whether the rows have a method of that name.

        A worker would send it with its whole environment, and die where that cannot be sent.
        """
        try:
            return all(workers.ask(("is_method", name), rows))
        except AttributeError:  # a wrapper may have it
            return False

    def _is_wrapped(self, rows: Sequence[int], wrapper_class: WrapperClass) -> list[bool]:
        method = self._method("env_is_wrapped")
        return list(method(wrapper_class.classes, indices=self._indices(rows)))

    def _indices(self, rows: Sequence[int]) -> Indices:
        return None if list(rows) == list(range(self._vec_env.num_envs)) else rows

    def _method(self, name: str) -> Any:
        try:
            return getattr(self._vec_env, name)
        except AttributeError as error:
            raise AttributeError(
                f"{self._vec_env} has no method {name!r}, by which its sub-environments could be "
                "reached. Add it to that class."
            ) from error


# The methods by which `VecEnv`s are asked for what their sub-environments have.
_REACHING = ("has_attr", "get_attr", "set_attr", "env_method", "env_is_wrapped")


def vec_env_subenvs(vec_env: Any) -> SubEnvs:
    """The access to the sub-environments of a `VecEnv`.

    For SB3's own workers, by our commands, because a worker survives their exceptions.

    Args:
        vec_env: The environment, with its wrappers.
    """
    *wrappers, base = layers_of(vec_env)
    if not all(inherits(wrapper, name) for wrapper in wrappers for name in _REACHING):
        return MethodSubEnvs(vec_env)
    if reaches_rows_as(base, "DummyVecEnv"):
        return LocalSubEnvs(base)
    return _workers_of(base) or MethodSubEnvs(vec_env)


def _workers_of(base: Any) -> WorkerSubEnvs | None:
    """The rows of a `SubprocVecEnv`, reached by our commands; None of another `VecEnv`."""
    if not reaches_rows_as(base, "SubprocVecEnv"):
        return None
    workers = GuardedWorkers(base, run_command)
    return WorkerSubEnvs(workers.ask) if workers.guarded else None


def inherits_to_base(vec_env: Any, method: str) -> bool:
    """Whether this method is SB3's own in all wrappers; and in the base, or that of `to_sb3`."""
    *wrappers, base = layers_of(vec_env)
    if not all(inherits(wrapper, method) for wrapper in wrappers):
        return False
    return inherits_own(base, method) or inherits(base, method)


def _own_base(vec_env: Any) -> OwnVecEnv | None:
    """The `VecEnv` of this package inside of the wrappers, if its own methods access the rows."""
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
