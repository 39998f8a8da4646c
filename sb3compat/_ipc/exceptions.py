"""Exceptions that come from worker processes, through queues and pipes.

The worker makes sure that what it sends can be unpickled. Pickle alone does not: of an exception
whose `__init__` takes other arguments than it hands to its base class, it makes another one, or
none. Such an exception is sent in parts, and built without its `__init__`.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from sb3compat._ipc import by_value
from sb3compat.errors import WorkerError, traceback_in_worker


class Packed(NamedTuple):
    """An exception on its way to the parent.

    Attributes:
        data: The exception, pickled; empty if not even its class can be pickled.
        text: Its class and what it says.
        trace: The traceback in the worker.
    """

    data: bytes
    text: str
    trace: str

    def __call__(self, *_: Any) -> BaseException:
        """The exception; a `WorkerError` if it cannot be unpickled here."""
        try:
            error: BaseException = _loaded(self.data)
        except Exception:  # a module may raise anything while it is imported
            return WorkerError(
                "The sub-environment has raised an exception whose class cannot be pickled, or not "
                f"be imported here, such as one defined inside a function: {self.text}"
            )
        return error

    def reraise(self, where: str) -> NoReturn:
        """Raise the exception, with the worker's traceback as its cause.

        Args:
            where: What the worker was busy with, such as "row 3".
        """
        raise self() from traceback_in_worker(where, self.trace)


class Text:
    """Takes the place of a value that cannot be sent, and looks like it.

    Args:
        text: Its `repr`.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


class _Parts(NamedTuple):
    """What an exception is built of without its `__init__`.

    Attributes:
        cls: Its class.
        new: What its `__new__` gets.
        args: Its `args`.
        state: Its attributes.
    """

    cls: type[BaseException]
    new: tuple[Any, ...]
    args: tuple[Any, ...]
    state: Mapping[str, Any]


def packed(error: BaseException, trace: str | None = None) -> Packed:
    """An exception as it goes to the parent; called in the worker, where it was caught.

    Args:
        error: The exception.
        trace: Its traceback; None for that of the exception that is being handled.
    """
    text = f"{type(error).__module__}.{type(error).__qualname__}: {_text(error, str)}"
    return Packed(_pickled(error), text, traceback.format_exc() if trace is None else trace)


def _pickled(error: BaseException) -> bytes:
    said = _said(error)
    for dumps in (pickle.dumps, by_value.dumps):
        data = _dumped(error, dumps)
        if data and _said(_loaded(data)) == said:
            return data
    new: tuple[Any, ...] = error.args
    try:
        kind, arguments, *_ = tuple(error.__reduce__())
        new = arguments if kind is type(error) else new
    except Exception:
        pass
    state = {name: _sendable(value) for name, value in vars(error).items()}
    new, args = (tuple(map(_sendable, values)) for values in (new, error.args))
    parts = _Parts(type(error), new, args, state)
    return _dumped(parts, by_value.dumps)


def _said(error: BaseException) -> tuple[Any, ...]:
    """What shows whether an exception was built again as it was."""
    return type(error), _text(error, str), _text(error.args, repr), set(vars(error))


def _sendable(value: Any) -> Any:
    """The value, or a text in its place."""
    return value if _dumped(value, by_value.dumps) else Text(_text(value, repr))


def _dumped(value: Any, dumps: Callable[[Any], bytes]) -> bytes:
    """The value, pickled; empty if it cannot be, or not be unpickled again."""
    try:
        data = dumps(value)
        _loaded(data)
    except Exception:
        return b""
    return data


def _loaded(data: bytes) -> Any:
    """What was pickled; an exception, if those are its parts."""
    value = pickle.loads(data)
    return _built(value) if isinstance(value, _Parts) else value


def _built(parts: _Parts) -> BaseException:
    """Build an exception without its `__init__`."""
    cls, new, args, state = parts
    try:
        error = cls.__new__(cls, *new)
    except Exception:  # of a `__new__` of its own, maybe
        error = BaseException.__new__(cls, *new)
    error.args = args
    vars(error).update(state)
    return error


def _text(value: object, render: Callable[[object], str]) -> str:
    try:
        return render(value)
    except Exception:
        return f"<{type(value).__qualname__}>"


def mend_queue(queue: Any) -> None:
    """Have Gymnasium's error queue send every exception so that the parent can build it.

    By itself it drops those that cannot be pickled, in a thread of the worker that nobody listens
    to; and an exception class that takes several arguments is an unrelated `TypeError` in the
    parent.

    Args:
        queue: A `multiprocessing.Queue`, in a worker.
    """
    if "put" in vars(queue):
        return  # by another adapter of the same environment
    put = queue.put

    def put_packed(item: tuple[int, type, BaseException, str]) -> None:
        row, _, error, trace = item
        # What is raised is the result of a call of the second one with the third.
        put((row, sent := packed(error, trace), sent, trace))

    queue.put = put_packed
