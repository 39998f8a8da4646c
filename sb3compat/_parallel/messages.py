"""The messages between a parent and its workers, apart from arrays of fixed size."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from sb3compat._convert.types import Options, Space
from sb3compat._ipc import by_value
from sb3compat._ipc.exceptions import Packed, packed
from sb3compat.errors import ConversionError, UnsupportedEnvError, shown


class Failure(NamedTuple):
    """An exception on its way to the parent.

    Attributes:
        row: The row that it concerns, the first one of several.
        where: What it concerns, for messages.
        error: The exception, with its traceback in the worker.
    """

    row: int
    where: str
    error: Packed

    def reraise(self) -> NoReturn:
        """Raise the exception, with the worker's traceback as its cause."""
        self.error.reraise(self.where)


class Described(NamedTuple):
    """A description of the parts of one worker.

    Attributes:
        rows: The number of rows of each part.
        spaces: The space of one observation, and of one action.
        shown_space: The space that contains the observations, as wrappers may declare another one.
        metadata: The metadata of the first part, but for what cannot be pickled.
        spec: Its spec, pickled; None if that cannot be.
        single: Whether each part is a single environment.
        seeds_rows: Whether each row takes a seed of its own.
        largest_seed: The largest seed that each row takes; None if they take all.
        returned: Which of its `environments_in` each function has returned; None if another one.
    """

    rows: list[int]
    spaces: tuple[Space, Space]
    shown_space: Space
    metadata: Options
    spec: bytes | None
    single: bool
    seeds_rows: bool
    largest_seed: int | None
    returned: list[int | None]


def named(rows: slice) -> str:
    """Neighbouring rows, for messages."""
    first, last = rows.start, rows.stop - 1
    return f"row {first}" if first == last else f"rows {first} to {last}"


def dumps(value: Any) -> bytes:
    """Pickle a value; classes without an importable name, as in a notebook, by value."""
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:
        return by_value.dumps(value)


def can_send(value: Any) -> bool:
    """Whether `dumps` can pickle a value."""
    try:
        dumps(value)
    except Exception:
        return False
    return True


def dumps_command(*command: Any) -> bytes:
    """Pickle a command; classes of `__main__` go by value, as no worker imports that.

    Raises:
        UnsupportedEnvError: If it cannot be pickled; also a `TypeError`.
    """
    try:
        return by_value.dumps(command)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise UnsupportedEnvError(
            "Expected arguments of sub-environments that can be sent to a worker, got one that "
            f"cannot: {type(error).__name__}: {error}. Send the data that the object is made of, "
            "and let a method of the environment create the object in the worker."
        ) from error


def dumps_make(env_fns: Sequence[Callable[[], Any]] | None, first: int) -> bytes:
    """Pickle the command to make parts, with the functions that make them.

    Args:
        env_fns: The functions; None for a worker that has them.
        first: The number of the first of them.

    Raises:
        UnsupportedEnvError: If one cannot be pickled; the message says which.
    """
    if env_fns is None:
        return dumps_command("make", None, first)
    try:
        return dumps_command("make", by_value.dumps(list(env_fns)), first)
    except Exception:
        for number, env_fn in enumerate(env_fns, first):
            _check_picklable(env_fn, number)
        raise


def _check_picklable(env_fn: Callable[[], Any], number: int) -> None:
    try:
        by_value.dumps(env_fn)
    except Exception as error:
        raise UnsupportedEnvError(
            f"Expected env_fns[{number}] to be a function that can be sent to a worker, got "
            f"{shown(env_fn)}: {error}. Create the objects that it needs inside of the function. "
            "Or, for worker processes, pass start_method='fork': forks are copies of this "
            "process, to which nothing has to be sent."
        ) from error


def failure_of(error: BaseException, row: int, where: str) -> Failure:
    """An exception, ready to be sent; called where it was caught."""
    return Failure(row, where, packed(error))


def dumps_answer(value: Any, row: int, where: str) -> bytes:
    """Pickle an answer; one that cannot be pickled becomes a `Failure`."""
    try:
        return dumps(value)
    except OSError as error:  # not of pickling: a signal handler has raised it, as in a time limit
        return dumps(failure_of(error, row, where))
    except Exception as error:
        refusal = ConversionError(
            "Expected infos and results of sub-environments that can be pickled, as they come "
            f"from a worker process, got: {error}. Return copies without what cannot be pickled."
        )
        refusal.__cause__ = error
        return dumps(failure_of(refusal, row, where))
