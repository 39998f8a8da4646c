"""Values that go to another process with the classes and functions of which they are made.

Those of `__main__`, of a notebook or inside a function cannot be imported there, so cloudpickle
sends them by value. It fills a class that exists already with what has come: attributes that were
set since are lost, and methods of a class that is in use are replaced. Here a class that exists
stays as it is.
"""

from __future__ import annotations

import io
import pickle
import sys
import weakref
from collections.abc import Callable

import cloudpickle.cloudpickle as cloudpickle

from sb3compat._convert.types import Value
from sb3compat._upstream.private import private

# The classes that were begun here, and whose attributes have not come.
_UNFINISHED: weakref.WeakSet[type] = weakref.WeakSet()


class ByValue:
    """Wraps a value for `pickle`, which then takes along what cannot be imported.

    Args:
        value: The value.
    """

    def __init__(self, value: Value) -> None:
        self._data: bytes = cloudpickle.dumps(value)

    def __reduce__(self) -> tuple[Callable[[bytes], Value], tuple[bytes]]:
        return loads, (self._data,)


def dumps(value: Value) -> bytes:
    """Pickle a value by value; `pickle.loads` gives it back, and changes no class."""
    return pickle.dumps(ByValue(value), pickle.HIGHEST_PROTOCOL)


def loads(data: bytes) -> Value:
    """What cloudpickle has pickled; classes that exist here stay as they are."""
    return _Unpickler(io.BytesIO(data)).load()


def name_main_classes() -> None:
    """Give the classes of `__main__` the names by which a fork knows them as its own."""
    for value in list(vars(sys.modules["__main__"]).values()):
        if isinstance(value, type) and value.__module__ == "__main__":
            private(cloudpickle, "_get_or_create_tracker_id")(value)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Value:
        found = super().find_class(module, name)
        if module.partition(".")[0] != "cloudpickle":
            return found
        if name == "_make_skeleton_class":
            return lambda *args: _class_of(found, args, args[1], args[3].get("__module__"))
        if name == "_make_skeleton_enum":
            return lambda *args: _class_of(found, args, args[2], args[4])
        return _fill(found) if name == "_class_setstate" else found


def _class_of(
    make: Callable[..., type], args: tuple[Value, ...], name: str, module: str | None
) -> type:
    """The class that these arguments of cloudpickle mean; begun here if it does not exist."""
    known = private(cloudpickle, "_DYNAMIC_CLASS_TRACKER_BY_ID").get(args[-2])
    if known is None and module == "__main__":
        known = _of_main(name)
        if known is not None:
            private(cloudpickle, "_lookup_class_or_track")(args[-2], known)
    if known is not None:
        cls: type = known
        return cls
    cls = make(*args)
    _UNFINISHED.add(cls)
    return cls


def _of_main(name: str) -> type | None:
    """The class in a worker that has imported the parent's main module itself."""
    main = sys.modules.get("__mp_main__")
    # Elsewhere, this is another name of `__main__`.
    if main is None or main.__name__ != "__mp_main__":
        return None
    found = getattr(main, name, None)
    return found if isinstance(found, type) else None


def _fill(setstate: Callable[[type, Value], type]) -> Callable[[type, Value], type]:
    def fill(cls: type, state: Value) -> type:
        if cls not in _UNFINISHED:
            return cls
        _UNFINISHED.discard(cls)
        return setstate(cls, state)

    return fill
