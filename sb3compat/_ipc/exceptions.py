"""Exceptions that come from worker processes, through queues and pipes.

They arrive as pickle builds them, where that gives back what was raised. It does not for a class
whose `__init__` takes other arguments than it hands to its base class: such an exception is built
without its `__init__`, from its `args` and attributes.
"""

from __future__ import annotations

import io
import pickle
import time
import traceback
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, NoReturn

from sb3compat._convert.types import Value
from sb3compat._ipc.by_value import ByValue
from sb3compat._upstream.private import private
from sb3compat.errors import WorkerError, traceback_in_worker

# The implementation in Python, as that in C has nothing to override.
_Unpickler: Any = private(pickle, "_Unpickler")
# How deep to look for what cannot be pickled, in the attributes of an exception.
_DEPTH = 5


class Raised(NamedTuple):
    """An exception and its traceback, as they come from a worker.

    Attributes:
        row: The row whose worker raised it; -1 where that is not known.
        error: The exception; a `WorkerError` if its class cannot be imported here.
        trace: The traceback, as text.
    """

    row: int
    error: BaseException
    trace: str


class StandIn:
    """Takes the place of a value that cannot be pickled, or not be built here; looks like it."""

    def __init__(self, *args: Value, **kwargs: Value) -> None:
        self.texts = f"{type(self).__name__}{args}", f"{type(self).__name__}{args}"

    @classmethod
    def of(cls, value: object) -> StandIn:
        """The stand-in for a value."""
        made = cls()
        made.texts = _text(value, repr), _text(value, str)
        return made

    def __repr__(self) -> str:
        return self.texts[0]

    def __str__(self) -> str:
        return self.texts[1]

    def __setstate__(self, state: Value) -> None:
        if isinstance(state, dict) and isinstance(state.get("texts"), tuple):
            self.texts = state["texts"]

    def append(self, value: Value) -> None:
        """Take what pickle adds to a list."""

    extend = append

    def __setitem__(self, key: Value, value: Value) -> None:
        """Take what pickle adds to a dict."""


class Stripped:
    """An exception of which not everything can be pickled; unpickled, it is one of its class."""

    def __init__(self, error: BaseException, depth: int) -> None:
        try:
            function, given = tuple(error.__reduce__())[:2]
        except Exception:  # of a method of its own, maybe
            function, given = None, ()
        given = given if function is type(error) else error.args
        parts = type(error), given, error.args, dict(vars(error))
        self.arguments = tuple(sendable(part, depth - 1) for part in parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return build, self.arguments


def sendable(value: Value, depth: int = _DEPTH) -> Value:
    """The value, or if it cannot be pickled, the nearest that can be and has the same text."""
    if _can_pickle(value):
        return value
    if isinstance(value, BaseException) and depth:
        stripped = Stripped(value, depth)
        if isinstance(stripped.arguments[0], StandIn):
            return _unavailable(f"{type(value).__qualname__}: {_text(value, str)}")
        return stripped if _can_pickle(stripped) else StandIn.of(value)
    if type(value) in (list, tuple) and depth:
        return type(value)(sendable(part, depth - 1) for part in value)
    if type(value) is dict and depth:
        return {sendable(k, depth - 1): sendable(part, depth - 1) for k, part in value.items()}
    try:
        return ByValue(value)
    except Exception:
        return StandIn.of(value)


def packed(error: BaseException) -> tuple[bytes, str]:
    """An exception as it goes through a pipe: pickled, and its traceback."""
    trace = traceback.format_exc()
    return pickle.dumps(sendable(error)), trace


def unpacked(row: int, data: bytes, trace: str) -> Raised:
    """The inverse of `packed`."""
    return Raised(row, _as_error(ExceptionUnpickler(io.BytesIO(data)).load()), trace)


def mend_queue(queue: Any) -> None:
    """Let Gymnasium's error queue take exceptions that cannot be pickled.

    It drops them, in a thread of the worker that nobody listens to.

    Args:
        queue: A `multiprocessing.Queue`, in a worker.
    """
    if "put" in vars(queue):
        return  # by another adapter of the same environment
    put = queue.put

    def put_sendable(item: tuple[int, type, BaseException, str]) -> None:
        row, kind, error, trace = item
        sent = sendable(error)
        put((row, kind if _can_pickle(kind) else WorkerError, sent, trace))

    queue.put = put_sendable


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
    if not isinstance(value, BaseException | StandIn):  # of a custom worker
        value = _made(kind, (value,))
    return Raised(row, _as_error(value), trace)


def reraise(row: int, raised: Raised | None) -> NoReturn:
    """Raise what a worker has raised, with the worker's traceback as its cause.

    Args:
        row: The row whose worker has failed.
        raised: What it raised; None if that did not arrive.

    Raises:
        WorkerError: If the exception did not arrive, or its class cannot be imported here.
    """
    trace = "no traceback: the exception could not be pickled" if raised is None else raised.trace
    cause = traceback_in_worker(f"row {row}", trace)
    if raised is None:
        raise WorkerError(
            f"The sub-environment of row {row} has raised an exception that cannot be pickled. Its "
            "traceback is in the worker's own output."
        ) from cause
    raise raised.error from cause


def build(
    cls: type[BaseException], given: Value, args: Value, state: Mapping[str, Value]
) -> BaseException:
    """Build an exception without its `__init__`.

    Args:
        cls: Its class.
        given: What its `__new__` gets.
        args: Its `args`.
        state: Its attributes.
    """
    try:
        error = cls.__new__(cls, *given)
    except Exception:  # of a `__new__` of its own, maybe
        error = BaseException.__new__(cls, *given)
    error.args = args
    vars(error).update(state)
    return error


class ExceptionUnpickler(_Unpickler):  # type: ignore[misc]
    """Unpickles exceptions, whatever of them or in them cannot be built."""

    dispatch: ClassVar[dict[int, Any]] = dict(private(_Unpickler, "dispatch"))

    def find_class(self, module: str, name: str) -> Value:
        """The class; a stand-in if only the worker has it."""
        try:
            return super().find_class(module, name)
        except Exception:  # a module may raise anything while it is imported
            return type(f"{module}.{name}", (StandIn,), {})

    def load_reduce(self) -> None:
        """What `pickle` does with the opcode REDUCE."""
        stack = private(self, "stack")
        args = stack.pop()
        stack[-1] = _made(stack[-1], args)

    def load_build(self) -> None:
        """What `pickle` does with the opcode BUILD."""
        stack = private(self, "stack")
        made, state = stack[-2:]
        above = len(stack) - 1
        try:
            super().load_build()
        except Exception:  # of a `__setstate__` of its own, maybe
            del stack[above:]
            if isinstance(made, BaseException) and isinstance(state, dict):
                vars(made).update(state)

    dispatch[pickle.REDUCE[0]] = load_reduce
    dispatch[pickle.BUILD[0]] = load_build


def _made(function: Any, args: tuple[Value, ...]) -> Value:
    is_error = isinstance(function, type) and issubclass(function, BaseException)
    try:
        made = function(*args)
        if not is_error or _pickles_as(made, args):
            return made
    except Exception:
        if not is_error:
            return StandIn(function, *args)
    return build(function, args, args, {})


def _pickles_as(error: BaseException, args: tuple[Value, ...]) -> bool:
    """Whether an exception built from these arguments gives them again, as the worker's did.

    One that formats its argument into a text, `super().__init__(f"row {row}")`, does not.
    """
    again = error.__reduce__()
    return (
        isinstance(again, tuple) and len(again[1]) == len(args) and all(map(_same, again[1], args))
    )


def _same(a: Value, b: Value) -> bool:
    try:
        return a is b or bool(a == b)
    except Exception:  # arrays, for instance: what was rebuilt is not known to be another
        return True


def _can_pickle(value: Value) -> bool:
    try:
        pickle.dumps(value)
    except Exception:
        return False
    return True


def _as_error(value: Value) -> BaseException:
    return value if isinstance(value, BaseException) else _unavailable(_text(value, str))


def _unavailable(raised: str) -> WorkerError:
    return WorkerError(
        f"The sub-environment has raised an exception whose class cannot be pickled, or not be "
        f"imported here, such as one defined inside a function: {raised}"
    )


def _text(value: object, render: Any) -> str:
    try:
        return str(render(value))
    except Exception:
        return f"<{type(value).__qualname__}>"
