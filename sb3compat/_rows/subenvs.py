"""Access single sub-environments by row: the implementations of `SubEnvs`.

A request is a command of `commands.py`. Local sub-environments run it in this process, those in
workers run it in the worker, and a vector environment without sub-environments answers for all
rows. `vec_env_subenvs.py` uses the methods of a `VecEnv`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from sb3compat._convert.arrays import is_foreign_array, to_numpy
from sb3compat._convert.options import same_value
from sb3compat._convert.types import (
    AnyAsync,
    AnyVectorEnv,
    Command,
    HoldsVecEnv,
    Indices,
    Kwargs,
    SubEnvs,
    holds_vec_env,
    inside_wrappers,
    wrappers_of,
)
from sb3compat._ipc import async_vector_env
from sb3compat._ipc.worker_guard import NAME, Inside, missing_in_worker, plant, results_of
from sb3compat._rows.commands import run_command
from sb3compat._upstream.inherited import changed
from sb3compat.errors import shown, warn


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
    if isinstance(indices, np.ndarray):
        indices = np.atleast_1d(indices)
    listed: Iterable[Any] = indices if isinstance(indices, Iterable) else [indices]
    try:
        wanted = [_number(i) for i in listed]
    except TypeError:
        raise TypeError(
            f"Expected indices as None, an int or a list of ints, got indices={shown(indices)} "
            f"({type(indices).__name__}). Pass the numbers of the rows, or None for all."
        ) from None
    for i in wanted:
        if not -num_envs <= i < num_envs:
            raise IndexError(
                f"Expected indices in [-{num_envs}, {num_envs}), the number of sub-environments "
                f"being {num_envs}, got {i}. Pass the numbers of existing rows."
            )
    return [i % num_envs for i in wanted]


def _number(index: Any) -> int:
    """An index as a number; that of a mask is none, although it counts as 0 or 1."""
    if isinstance(index, bool):
        raise TypeError
    return operator.index(index)


def write_by_row(subenvs: SubEnvs, name: str, values: Sequence[Any]) -> None:
    """Set an attribute as Gymnasium's `set_attr` does, one value for each row.

    One value for all rows is set by a single command, as rows that share an attribute require.
    """
    if all(_is_same(value, values[0]) for value in values):
        subenvs.ask(("write", name, values[0]), list(range(len(values))))
        return
    for row, value in enumerate(values):
        subenvs.ask(("write", name, value), [row])


def _is_same(a: Any, b: Any) -> bool:
    """Whether the two values are the same; 0.0 and -0.0 are not."""
    plain = isinstance(a, bool | int | float | str | bytes)
    return a is b or (plain and same_value(a, b) and repr(a) == repr(b))


def answered_by(subenvs: object, command: Command, rows: Sequence[int]) -> list[Any]:
    """The result of the method `_name`, which handles the command of that name."""
    name, *args = command
    answers: list[Any] = getattr(subenvs, f"_{name}")(rows, *args)
    return answers


class LocalSubEnvs:
    """Sub-environments that are objects in this process.

    Args:
        owner: The object whose list `envs` they are in; it is read anew each time, as the list may
            be replaced.

    Attributes:
        owner: The same.
    """

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def ask(self, command: Command, rows: Sequence[int]) -> list[Any]:
        """Run a command on each of these rows, one after the other."""
        return [run_command(self.owner.envs[row], *command) for row in rows]


class WorkerSubEnvs:
    """Sub-environments in workers; only the workers of the given rows are asked, in parallel.

    Args:
        ask: Gives each row its command, then collects the results.
    """

    def __init__(self, ask: Callable[[Mapping[int, Command]], dict[int, Any]]) -> None:
        self._ask = ask

    def ask(self, command: Command, rows: Sequence[int]) -> list[Any]:
        """Run a command on each of these rows."""
        if len({*rows}) < len(rows):  # a row that is named twice is asked twice, as in DummyVecEnv
            return [answer for row in rows for answer in self.ask(command, [row])]
        answers = self._ask(dict.fromkeys(rows, command))
        return [answers[row] for row in rows]


class AsyncCommands:
    """Gives commands to the workers of an `AsyncVectorEnv`, by a `Guard` in each.

    `AsyncVectorEnv.call` asks all workers, and a worker dies of the first exception.

    Args:
        env: The vector environment.
    """

    def __init__(self, env: AnyAsync) -> None:
        self._env = env
        self._guarded = False
        async_vector_env.mend_errors(env)

    def ask(self, commands: Mapping[int, Command]) -> dict[int, Any]:
        """Give each row its command, then collect the results."""
        env = self._env
        if not self._guarded:
            what = Inside(plant, run_command, "_sb3compat_no")
            if not all(async_vector_env.ask_inside(env, range(env.num_envs), what)):
                raise missing_in_worker("env")
            self._guarded = True
        messages: dict[int, tuple[str, Any]] = {
            row: ("_call", (NAME, command, {})) for row, command in commands.items()
        }
        return results_of(dict(zip(commands, async_vector_env.ask(env, messages), strict=True)))

    def render(self) -> list[Any]:
        """One frame for each row."""
        command: Command = "call", "render", (), {}
        return list(self.ask(dict.fromkeys(range(self._env.num_envs), command)).values())


class NativeSubEnvs:
    """A natively vectorized environment, which answers for all of its rows at once.

    Args:
        env: The environment, with its wrappers.
    """

    def __init__(self, env: AnyVectorEnv) -> None:
        self.env = env

    def ask(self, command: Command, rows: Sequence[int]) -> list[Any]:
        """The answer of the vector environment, once for each of these rows.

        Raises:
            AttributeError: If it does not have the attribute.
            ValueError: If the command would concern other rows, too.
        """
        return answered_by(self, command, rows) if rows else []

    def _has(self, rows: Sequence[int], name: str) -> list[bool]:
        return [self._owner(name) is not None] * len(rows)

    def _get(self, rows: Sequence[int], name: str) -> list[Any]:
        return [self._value(name)] * len(rows)

    def _set(self, rows: Sequence[int], name: str, value: Any) -> list[None]:
        self._check_all(name, rows)
        setattr(self._owner(name) or self.env, name, value)
        return [None] * len(rows)

    _write = _set

    def _call(
        self, rows: Sequence[int], name: str, args: tuple[Any, ...], kwargs: Kwargs
    ) -> list[Any]:
        """Call the method once; a batch of n is split by row, other results are for every row."""
        if name in _OF_ALL_ROWS:
            raise ValueError(
                f"Expected a method of single rows, got {name!r} of {self.env}, which is "
                f"vectorised natively. Use {name}() of the vector environment."
            )
        if name in _OF_ARGUMENTS:
            return [self._result(name, args, kwargs)] * len(rows)
        self._check_all(name, rows)
        result = self._result(name, args, kwargs)
        is_batch = isinstance(result, list | tuple) or (
            isinstance(result, np.ndarray) and result.ndim > 0
        )
        if is_batch and len(result) == self.env.num_envs:
            return [result[row] for row in rows]
        return [result] * len(rows)

    def _read(
        self, rows: Sequence[int], name: str, args: tuple[Any, ...], kwargs: Kwargs
    ) -> list[Any]:
        is_method = callable(self._value(name))
        return self._call(rows, name, args, kwargs) if is_method else self._get(rows, name)

    def _is_wrapped(self, rows: Sequence[int], _: object) -> list[bool]:
        return [False] * len(rows)

    def _result(self, name: str, args: tuple[Any, ...], kwargs: Kwargs) -> Any:
        result = self._value(name)(*args, **kwargs)
        return to_numpy(result) if is_foreign_array(result) else result

    def _value(self, name: str) -> Any:
        owner = self._owner(name)
        if owner is None:
            raise AttributeError(
                f"{self.env} has no attribute {name!r}. It is vectorised natively, so there are "
                "no sub-environments that could have it. Use a name that the environment has."
            )
        return getattr(owner, name)

    def _owner(self, name: str) -> Any:
        """The outermost wrapper that has the attribute, or the environment itself, or None."""
        # A wrapper's `__getattr__` passes on to what is inside; that of the environment counts.
        for wrapper in wrappers_of(self.env):
            if name in vars(wrapper) or hasattr(type(wrapper), name):
                return wrapper
        base = inside_wrappers(self.env)
        return next((env for env in (base, base.unwrapped) if hasattr(env, name)), None)

    def _check_all(self, name: str, rows: Sequence[int]) -> None:
        if set(rows) != set(range(self.env.num_envs)):
            raise ValueError(
                f"Expected indices=None, or the indices of all its rows, for {name!r}: {self.env} "
                f"is vectorised natively, so its {self.env.num_envs} rows share attributes and "
                f"methods, got the indices of {len({*rows})}. Leave indices out."
            )


# These methods concern all rows.
_OF_ALL_ROWS = ("reset", "step", "close")

# By the contract of goal environments, the results of these methods depend only on their arguments,
# which are a batch from a replay buffer and not one value for each row.
_OF_ARGUMENTS = ("compute_reward", "compute_terminated", "compute_truncated")


# What reaches the sub-environments of a vector environment; that of Gymnasium calls the last two.
REACHING = ("call", "get_attr", "set_attr", "call_async", "call_wait")


def subenvs_of(env: AnyVectorEnv) -> SubEnvs:
    """How to reach the sub-environments of a vector environment."""
    base = inside_wrappers(env)
    if isinstance(base, SyncVectorEnv):
        _warn_if_bypassed(env, base, SyncVectorEnv)
        return LocalSubEnvs(base)
    if isinstance(base, AsyncVectorEnv):
        _warn_if_bypassed(env, base, AsyncVectorEnv)
        return WorkerSubEnvs(AsyncCommands(base).ask)
    if holds_vec_env(base) and changed(base, HoldsVecEnv, *REACHING, "subenvs") is None:
        _warn_if_bypassed(env, base, HoldsVecEnv)
        return base.subenvs
    return NativeSubEnvs(env)


def _warn_if_bypassed(env: AnyVectorEnv, base: Any, cls: type) -> None:
    """Warn of methods of its own, which are for all rows and know no indices."""
    found = [
        (layer, name)
        for layer in wrappers_of(env)
        for name in REACHING
        if name in vars(layer) or hasattr(type(layer), name)
    ]
    for layer, name in [*found, (base, changed(base, cls, *REACHING))][:1]:
        if name is not None:
            warn(
                f"SB3's get_attr, set_attr and env_method reach the sub-environments of {env} "
                f"themselves, not by {type(layer).__name__}.{name}. Put what that does into a "
                "wrapper of the sub-environments, or call it on the vector environment."
            )
