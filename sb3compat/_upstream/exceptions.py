"""Exceptions that come from worker processes, through queues and pipes."""

from __future__ import annotations

import io
import pickle
import time
import traceback
from typing import Any, ClassVar, NamedTuple, NoReturn

from sb3compat._upstream.private import private
from sb3compat.errors import WorkerError

# The implementation in Python, as that in C has nothing to override.
_Unpickler: Any = private(pickle, "_Unpickler")


class Raised(NamedTuple):
    """An exception and its traceback, as they come from a worker.

    Attributes:
        row: The row whose worker raised it; -1 where that is not known.
        error: The exception; None if it cannot be pickled.
        trace: The traceback, as text.
    """

    row: int
    error: BaseException | None
    trace: str


def packed(error: Exception) -> tuple[bytes | None, str]:
    """An exception as it goes through a pipe: pickled, if it can be, and its traceback."""
    trace = traceback.format_exc()
    try:
        return pickle.dumps(error), trace
    except Exception:  # of a class defined inside a function, for instance
        return None, trace


def unpacked(row: int, data: bytes | None, trace: str) -> Raised:
    """The inverse of `packed`."""
    error = None if data is None else ExceptionUnpickler(io.BytesIO(data)).load()
    return Raised(row, error, trace)


def next_raised(queue: object, until: float) -> Raised | None:
    """What the next worker has put on Gymnasium's error queue; None if nothing comes in time.

    Not by the queue's own `get`: that waits for ever where a worker could not pickle its exception,
    and raises an unrelated `TypeError` for an exception class that takes several arguments.

    Args:
        queue: A `multiprocessing.Queue`.
        until: When to give up, by `time.monotonic`.
    """
    lock, reader = private(queue, "_rlock"), private(queue, "_reader")
    counter = private(queue, "_sem")
    with lock:
        there = reader.poll(max(0.0, until - time.monotonic()))
        data = reader.recv_bytes() if there else None
    if data is None:
        return None
    counter.release()
    row, kind, value, trace = ExceptionUnpickler(io.BytesIO(data)).load()
    return Raised(row, value if isinstance(value, BaseException) else kind(value), trace)


def reraise(row: int, raised: Raised | None) -> NoReturn:
    """Raise what a worker has raised, with the worker's traceback as its cause.

    Args:
        row: The row whose worker has failed.
        raised: What it raised; None if that did not arrive.

    Raises:
        WorkerError: If the exception did not arrive, or cannot be pickled.
    """
    trace = "no traceback: the exception could not be pickled" if raised is None else raised.trace
    cause = WorkerError(f"in the worker of row {row}:\n{trace}")
    if raised is None or raised.error is None:
        raise WorkerError(
            f"The sub-environment of row {row} has raised an exception that cannot be pickled, "
            "such as one of a class defined inside a function. Its traceback is in the worker's "
            "own output."
        ) from cause
    raise raised.error from cause


class ExceptionUnpickler(_Unpickler):  # type: ignore[misc]
    """Builds exceptions without their `__init__`, whose arguments pickle does not know."""

    dispatch: ClassVar[dict[int, Any]] = dict(private(_Unpickler, "dispatch"))

    def load_reduce(self) -> None:
        """What `pickle` does with the opcode REDUCE, but for exceptions."""
        stack = private(self, "stack")
        args = stack.pop()
        function = stack[-1]
        if isinstance(function, type) and issubclass(function, BaseException):
            error = function.__new__(function, *args)
            error.args = args
            stack[-1] = error
        else:
            stack[-1] = function(*args)

    dispatch[pickle.REDUCE[0]] = load_reduce
