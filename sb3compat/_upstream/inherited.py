"""Whether an object inherits its methods unchanged from a known class, so they may be bypassed.

A subclass, or an object whose methods were replaced, may do more in them. Bypassing such a method
would bypass that code.
"""

from __future__ import annotations

from typing import Any, Protocol

import gymnasium as gym
from gymnasium.vector import VectorEnv

# These do not make transitions. `_add_info` is called wherever the infos are made.
HARMLESS = (
    *("close", "close_extras", "render", "call", "call_async", "call_wait", "get_attr", "set_attr"),
    "_add_info",
)

# The methods of these base classes are meant to be overridden.
_INTERFACES = (VectorEnv, gym.Env)


def is_exactly(env: object, cls: type | None) -> bool:
    """Whether this is of that class, no subclass, and has its methods.

    They can be replaced in one object, too, as by `env.step = function`.
    """
    own = getattr(env, "__dict__", {})
    return type(env) is cls and not any(callable(getattr(cls, name, None)) for name in own)


def changed(env: object, cls: type, *methods: str) -> str | None:
    """A method of `cls` that `env` does not inherit from it.

    Args:
        env: An instance of `cls`, or of a class derived from it.
        cls: The class. Where it has no `step`, the nearest subclass that has one counts for it.
        methods: The names of methods; all but the `HARMLESS` ones when left out. A method that
            no other one calls counts as well, as that cannot be known.

    Returns:
        Its name; None if all are inherited unchanged.
    """
    order = type(env).__mro__
    place = _concrete(order, order.index(cls))
    for names in (getattr(env, "__dict__", {}), *map(vars, order[:place])):
        for name, value in names.items():
            wanted = name in methods if methods else not _is_harmless(name)
            if wanted and _is_another(value, name, order[place:]):
                return name
    return None


def keeps_all(env: object, cls: type) -> bool:
    """Whether `env` inherits all methods of `cls`, the `HARMLESS` ones included."""
    return not (changed(env, cls) or changed(env, cls, *HARMLESS))


def _concrete(order: tuple[type, ...], place: int) -> int:
    """The index of the class in `mro` or, if it has no `step`, of the next class with one."""
    defined = [i for i, cls in enumerate(order) if "step" in vars(cls) and not _is_interface(cls)]
    return min(place, max(defined, default=place))


def _is_interface(cls: type) -> bool:
    return cls in _INTERFACES or Protocol in cls.__bases__


def _is_harmless(name: str) -> bool:
    return name in HARMLESS or name.startswith("__")


def _is_another(value: Any, name: str, known: tuple[type, ...]) -> bool:
    """Whether this replaces a method or property of these classes by another one."""
    original = next((vars(cls)[name] for cls in known if name in vars(cls)), None)
    is_method = callable(original) or isinstance(original, property | staticmethod | classmethod)
    return is_method and getattr(value, "__func__", value) is not original
