"""What a parent and its workers say to each other, apart from arrays of fixed size."""

from __future__ import annotations

import pickle
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

import cloudpickle

from sb3compat._convert.types import Info, Options, Space, Value
from sb3compat._parallel.columns import Columns
from sb3compat._parallel.unshared import Unshared
from sb3compat._upstream.exceptions import packed, unpacked
from sb3compat.errors import ConversionError, traceback_in_worker


class Failure(NamedTuple):
    """An exception on its way to the parent.

    Attributes:
        row: The row that it concerns, the first one of several.
        where: What it concerns, for messages.
        error: The exception, pickled.
        trace: The traceback in the worker.
    """

    row: int
    where: str
    error: bytes
    trace: str

    def reraise(self) -> NoReturn:
        """Raise the exception, with the worker's traceback as its cause."""
        cause = traceback_in_worker(self.where, self.trace)
        raise unpacked(self.row, self.error, self.trace).error from cause


class News(NamedTuple):
    """What there is to say of a step besides the arrays; None is sent where there is nothing.

    Attributes:
        infos: The infos that do not consist of `TimeLimit.truncated` as the arrays say it, by row.
        columns: More of them, by column.
        reset_infos: The infos of resets within the step that are not empty, by row.
        unshared: The observations and rewards that do not fit into the arrays.
    """

    infos: dict[int, Info]
    columns: list[Columns]
    reset_infos: dict[int, Info]
    unshared: list[Unshared]


class Began(NamedTuple):
    """The answer to a reset.

    Attributes:
        infos: The info of each row.
        unshared: The observations that do not fit into the arrays.
    """

    infos: list[Info]
    unshared: list[Unshared]


class Described(NamedTuple):
    """What the parts of one worker are.

    Attributes:
        rows: The number of rows of each part.
        observation_space: The space of one observation.
        action_space: The space of one action.
        shown_space: The space that contains the observations, as wrappers may declare another one.
        metadata: The metadata of the first part.
        spec: Its spec, pickled; None if that cannot be.
        single: Whether each part is a single environment.
        seeds_rows: Whether each row takes a seed of its own.
    """

    rows: list[int]
    observation_space: Space
    action_space: Space
    shown_space: Space
    metadata: Options
    spec: bytes | None
    single: bool
    seeds_rows: bool


def dumps(value: Value) -> bytes:
    """Pickle a value; what has no importable name, such as a class of a notebook, goes by value."""
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:
        data: bytes = cloudpickle.dumps(value)
        return data


def dumps_command(*command: Any) -> bytes:
    """Pickle a command; classes of `__main__` go by value, as no worker imports that."""
    data: bytes = cloudpickle.dumps(command)
    return data


def failure_of(error: BaseException, row: int, where: str) -> Failure:
    """An exception, ready to be sent; called where it was caught."""
    data, trace = packed(error)
    try:
        pickle.dumps(type(error))
    except Exception:  # a class without an importable name, which goes by value if it can
        with suppress(Exception):
            data = cloudpickle.dumps(error)
    return Failure(row, where, data, trace)


def dumps_answer(value: Value, row: int, where: str) -> bytes:
    """Pickle an answer; one that cannot be pickled becomes a `Failure`."""
    try:
        return dumps(value)
    except Exception as error:
        refusal = ConversionError(
            f"Expected infos and results of sub-environments that can be pickled, as they come "
            f"from a worker process, got: {error}"
        )
        refusal.__cause__ = error
        return dumps(failure_of(refusal, row, where))
