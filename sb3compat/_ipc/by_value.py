"""Pickle values together with their classes and functions, if another process cannot import these.

Those of `__main__`, of a notebook or inside a function cannot be imported there, so cloudpickle
sends them by value. When cloudpickle unpickles a class that already exists, it overwrites the
class: attributes that were set since are lost, and methods of a class in use are replaced. This
module leaves an existing class unchanged.
"""

from __future__ import annotations

import io
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import cloudpickle.cloudpickle as cloudpickle

from sb3compat._upstream.private import private

# The classes that were created here and have not got their attributes yet.
_UNFINISHED: weakref.WeakSet[type] = weakref.WeakSet()

# What cloudpickle makes a class of, and then fills it with.
_Make = Callable[..., type]
_Fill = Callable[[type, Any], type]


def dumps(value: Any) -> bytes:
    """Pickle a value by value; `pickle.loads` gives it back, and changes no class."""
    with io.BytesIO() as file:
        _Pickler(file).dump(value)
        return file.getvalue()


def name_main_classes() -> None:
    """Give the classes of `__main__` the names by which a fork knows them as its own."""
    pending: list[object] = [sys.modules["__main__"]]
    while pending:
        for value in list(vars(pending.pop()).values()):
            if isinstance(value, type) and value.__module__ == "__main__":
                if value not in private(cloudpickle, "_DYNAMIC_CLASS_TRACKER_BY_CLASS"):
                    pending.append(value)
                private(cloudpickle, "_get_or_create_tracker_id")(value)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def reducer_override(self, obj: Any) -> Any:
        reduced = super().reducer_override(obj)
        if not isinstance(obj, type) or not isinstance(reduced, tuple) or len(reduced) < 6:
            return reduced
        make, args, state, _, _, fill = reduced
        slots = vars(obj).get("__slots__")  # in a named tuple, none
        if slots and make is private(cloudpickle, "_make_skeleton_class"):
            # cloudpickle sets them on the finished class, whose instances have a dict by then.
            kind, name, bases, namespace, *rest = args
            args = (kind, name, bases, {**namespace, "__slots__": slots}, *rest)
        path = obj.__qualname__ if class_at("__main__", obj.__qualname__) is obj else None
        return _begin, (make, args, path, mark_of(obj)), (fill, state), None, None, _finish


def _begin(make: _Make, args: tuple[Any, ...], path: str | None, mark: object) -> type:
    """The class that cloudpickle has described; created if it does not exist.

    Args:
        make: What begins it.
        args: The arguments for that, the last but one being what the class is known by.
        path: Where the main module of the sender has it, if it does.
        mark: What tells it from others of this path.
    """
    known: type | None = private(cloudpickle, "_DYNAMIC_CLASS_TRACKER_BY_ID").get(args[-2])
    if known is None and path is not None:
        own = class_at("__main__", path)
        known = own if own and mark_of(own) == mark else class_at("__mp_main__", path)
        if known is not None:
            private(cloudpickle, "_lookup_class_or_track")(args[-2], known)
    if known is None:
        known = make(*args)
        _UNFINISHED.add(known)
    return known


def mark_of(cls: type) -> object:
    """A mark that a class shares with its copy in a fork, but not with others of its name.

    A class that was defined again may lie at the address of the first, but is not written there.
    """
    codes = {name: getattr(value, "__code__", None) for name, value in vars(cls).items()}
    lines = {
        name: (code.co_filename, code.co_firstlineno, code.co_code)
        for name, code in codes.items()
        if isinstance(code, types.CodeType)
    }
    return id(cls), [(base.__module__, base.__qualname__) for base in cls.__mro__], lines


def _finish(cls: type, filling: tuple[_Fill, Any]) -> type:
    fill, state = filling
    if cls in _UNFINISHED:
        _UNFINISHED.discard(cls)
        fill(cls, state)
    return cls


def class_at(name: str, path: str) -> type | None:
    """The class at this path of a module of this name, if the module is imported here."""
    found: Any = sys.modules.get(name)
    # Elsewhere than in workers that import the main module, `__mp_main__` is another name of it.
    if getattr(found, "__name__", None) != name:
        return None
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None
