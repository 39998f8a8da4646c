"""Exceptions that come from worker processes, through queues and pipes.

The worker makes sure that what it sends can be unpickled. Pickle alone does not: of an exception
whose `__init__` takes other arguments than it hands to its base class, it makes another one, or
none. Such an exception is sent in parts, and built without its `__init__`; exceptions among its
parts, such as the members of a group, are sent in the same way.
"""

from __future__ import annotations

import builtins
import pickle
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MemberDescriptorType
from typing import Any, NamedTuple, NoReturn

from sb3compat._ipc import by_value
from sb3compat.errors import WorkerError, traceback_in_worker

# Nothing is an instance of an empty tuple: Python 3.10 has no groups.
_GROUP: Any = getattr(builtins, "BaseExceptionGroup", ())

# Python does not pickle it either: it is often the sub-environment itself.
_NOT_SENT = vars(AttributeError)["obj"]


class Packed(NamedTuple):
    """An exception on its way to the parent.

    Attributes:
        data: The exception, pickled; empty if not even its class can be pickled.
        text: Its class and its message.
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
            where: What the worker was doing, such as "row 3".
        """
        raise self() from traceback_in_worker(where, self.trace)


class Text:
    """Replaces a value that cannot be sent; its `repr` is that of the value.

    Args:
        text: Its `repr`.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


class _Inner:
    """An exception among the parts of another one; unpickled, it is the exception again."""

    def __init__(self, error: BaseException, packed: Packed) -> None:
        self.error = error  # keeps it alive, so that no other one gets its id
        self._packed = packed

    def __reduce__(self) -> tuple[Packed, tuple[()]]:
        return self._packed, ()


# The replacements of exceptions that have been packed, or are being packed, by their id.
_Seen = dict[int, "_Inner | Text"]


class _Parts(NamedTuple):
    """The parts from which an exception is rebuilt without calling its `__init__`.

    Attributes:
        cls: Its class.
        new: What the `__new__` of its built-in class gets.
        args: Its `args`.
        state: Its attributes.
        members: Those that are slots or belong to built-in classes, such as `errno`.
    """

    cls: type[BaseException]
    new: tuple[Any, ...]
    args: tuple[Any, ...]
    state: Mapping[str, Any]
    members: Mapping[str, Any]


def packed(error: BaseException, trace: str | None = None) -> Packed:
    """An exception in the form in which it is sent to the parent; called in the worker.

    Args:
        error: The exception.
        trace: Its traceback; None for that of the exception that is being handled.
    """
    return _packed(error, traceback.format_exc() if trace is None else trace, {})


def _packed(error: BaseException, trace: str, seen: _Seen) -> Packed:
    text = f"{type(error).__module__}.{type(error).__qualname__}: {_text(error, str)}"
    seen[id(error)] = Text(_text(error, repr))  # if it holds itself
    try:
        data = _pickled(error, seen)
    except Exception:  # for example a list that contains itself: the worker must be able to answer
        data = b""
    seen[id(error)] = _Inner(error, packed := Packed(data, text, trace))
    return packed


def _pickled(error: BaseException, seen: _Seen) -> bytes:
    said = _said(error)
    for dumps in (pickle.dumps, by_value.dumps):
        data = _dumped(error, dumps)
        if data and _said(_loaded(data)) == said:
            return data
    new = (error.message, list(error.exceptions)) if isinstance(error, _GROUP) else ()
    new, args = (tuple(_sendable(value, seen) for value in values) for values in (new, error.args))
    state, members = (
        {name: _sendable(value, seen) for name, value in values.items()}
        for values in (vars(error), _members(error))
    )
    return _dumped(_Parts(type(error), new, args, state, members), by_value.dumps)


def _said(error: BaseException, within: tuple[int, ...] = ()) -> tuple[Any, ...]:
    """A value that is equal if an exception, and those inside of it, were rebuilt unchanged."""
    within = (*within, id(error))
    inner = (*error.exceptions,) if isinstance(error, _GROUP) else ()
    members = {name: _text(value, repr) for name, value in _members(error).items()}
    held = [_held(value, within) for value in (error.args, inner, _members(error))]
    state = {name: _held(value, within) for name, value in vars(error).items()}
    return type(error), _text(error, str), _text(error.args, repr), members, held, state


def _held(value: Any, within: tuple[int, ...]) -> Any:
    """A value that is equal if the exceptions in a value were rebuilt unchanged."""
    if id(value) in within:
        return ()
    if isinstance(value, BaseException):
        return _said(value, within)
    if not isinstance(value, list | tuple | dict):
        return ""
    parts = value.values() if isinstance(value, dict) else value
    return _text(value, repr), [_held(part, (*within, id(value))) for part in parts]


def _descriptors(cls: type) -> dict[str, MemberDescriptorType]:
    """What gets and sets the attributes of a class that are not in the `__dict__` of an object."""
    return {
        name: value
        for base in reversed(cls.__mro__)
        for name, value in vars(base).items()
        if isinstance(value, MemberDescriptorType)
        and value is not _NOT_SENT
        and base is not BaseException  # what belongs to the raising
    }


def _members(error: BaseException) -> dict[str, Any]:
    """The attributes that are not in the `__dict__`, as far as they have a value."""
    members = {}
    for name, descriptor in _descriptors(type(error)).items():
        with suppress(AttributeError):  # an empty slot
            members[name] = descriptor.__get__(error)
    return {name: value for name, value in members.items() if value is not None}


def _sendable(value: Any, seen: _Seen) -> Any:
    """The value, or its replacement."""
    if isinstance(value, BaseException):
        if id(value) not in seen:
            _packed(value, "", seen)
        return seen[id(value)]
    if type(value) in (list, tuple) and any(isinstance(item, BaseException) for item in value):
        return type(value)(_sendable(item, seen) for item in value)
    if type(value) is dict and any(isinstance(item, BaseException) for item in value.values()):
        return {key: _sendable(item, seen) for key, item in value.items()}
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
    """Build an exception without its `__init__`, and without a `__new__` of its own."""
    cls, new, args, state, members = parts
    base: Any = cls
    while base.__module__ != "builtins":
        base = base.__base__
    error: BaseException = base.__new__(cls, *new)
    error.args = args
    vars(error).update(state)
    for name, descriptor in _descriptors(cls).items():
        if name in members:
            with suppress(AttributeError, TypeError):  # read-only, as the members of a group
                descriptor.__set__(error, members[name])
    return error


def _text(value: object, render: Callable[[object], str]) -> str:
    try:
        return render(value)
    except Exception:
        return f"<{type(value).__qualname__}>"


def mend_queue(queue: Any) -> None:
    """Make Gymnasium's error queue send every exception in a form that the parent can rebuild.

    Unchanged, the queue drops exceptions that cannot be pickled, in a thread of the worker whose
    errors are ignored; and an exception class with several arguments becomes an unrelated
    `TypeError` in the parent.

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
