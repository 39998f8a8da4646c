"""Whether an object's methods are those of a class that we know, so that they may be replaced.

A subclass, or an object with methods of its own, does something else in them. What goes around such
a method would bypass that code.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator
from types import CodeType, FunctionType
from typing import Any, Protocol

import gymnasium as gym
from gymnasium.vector import VectorEnv

from sb3compat._convert.options import same_value

# No transition comes from these, whatever calls them.
_NO_TRANSITION = ("close", "close_extras", "render")
# What these define is there to be overridden.
_INTERFACES = (VectorEnv, gym.Env)


def changed(env: object, cls: type, *methods: str, known: Collection[str] = ()) -> str | None:
    """The first of these methods, or of those that they call, that is not as in `cls`.

    Args:
        env: An instance of `cls`, or of a class derived from it.
        cls: The class. Where it is abstract, its nearest subclass counts for it.
        methods: The names of methods.
        known: Names that do not matter, because what replaces the methods uses them too.

    Returns:
        The name; None if all are inherited unchanged.
    """
    for name in _reached(type(env), methods):
        if name in methods or name not in known:
            versions = list(_versions(env, cls, name))
            if _is_concrete(env, cls, methods):
                versions += _of_interface(env, cls, name)
            if not all(_alike(version, versions[-1]) for version in versions):
                return name
    return None


def names_in(function: Any) -> set[str]:
    """The attributes and globals that a function, or a callable object, refers to."""
    code = _code(function) or _code(inspect.getattr_static(type(function), "__call__", None))
    return set() if code is None else set(_names(code))


def _reached(cls: type, methods: Collection[str]) -> list[str]:
    """These methods and what they call on themselves, at any depth.

    By name: a method that another object has under the same name counts as well.
    """
    found: list[str] = []
    pending = list(methods)
    while pending:
        name = pending.pop(0)
        value = inspect.getattr_static(cls, name, None)
        if name in found or not (callable(value) or isinstance(value, property)):
            continue
        found.append(name)
        code = _code(value)
        if code is not None:
            pending += [one for one in _names(code) if one not in _NO_TRANSITION]
    return found


def _versions(env: object, cls: type, name: str) -> Iterator[object]:
    """What stands for `name`, from the object itself up to `cls`."""
    own = getattr(env, "__dict__", {})
    if name in own:
        yield own[name]
    order = type(env).__mro__
    known = order.index(cls)
    for place, base in enumerate(order):
        if not _is_interface(base) and name in vars(base):
            yield vars(base)[name]
            if place >= known:
                return


def _is_interface(cls: type) -> bool:
    """Whether what the class defines is there to be overridden."""
    return cls in _INTERFACES or Protocol in cls.__bases__


def _is_concrete(env: object, cls: type, methods: Collection[str]) -> bool:
    """Whether one of the methods is defined by the class, or by what it derives from."""
    order = type(env).__mro__
    bases = [base for base in order[order.index(cls) :] if not _is_interface(base)]
    return any(name in vars(base) for base in bases for name in methods)


def _of_interface(env: object, cls: type, name: str) -> list[object]:
    """What an interface defines, and the class and what it derives from do not."""
    order = type(env).__mro__
    base = next((base for base in order[order.index(cls) :] if name in vars(base)), None)
    return [vars(base)[name]] if base in _INTERFACES else []


def _alike(a: Any, b: Any) -> bool:
    """Whether two methods are the same. EnvPool makes one anew for each class, by one function."""
    first, second = _function(a), _function(b)
    if first is second:
        return True
    if not (isinstance(first, FunctionType) and isinstance(second, FunctionType)):
        return False
    cells = [[cell.cell_contents for cell in one.__closure__ or ()] for one in (first, second)]
    return first.__code__ is second.__code__ and bool(cells[0]) and same_value(*cells)


def _function(value: Any) -> Any:
    if isinstance(value, property):
        return value.fget
    return getattr(value, "__func__", value)


def _code(value: Any) -> CodeType | None:
    code = getattr(inspect.unwrap(_function(value)), "__code__", None)
    return code if isinstance(code, CodeType) else None


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
