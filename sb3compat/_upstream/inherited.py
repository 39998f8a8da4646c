"""Whether an object's methods are those of a class that we know, so that they may be replaced.

A subclass, or an object with methods of its own, does something else in them. What goes around such
a method would bypass that code.
"""

from __future__ import annotations

from typing import Any, Protocol

import gymnasium as gym
from gymnasium.vector import VectorEnv

# No transition comes from these. `_add_info` is called wherever its infos are made.
HARMLESS = ("close", "close_extras", "render", "call", "get_attr", "set_attr", "_add_info")

# What these define is there to be overridden.
_INTERFACES = (VectorEnv, gym.Env)


def changed(env: object, cls: type, *methods: str) -> str | None:
    """A method of `cls` that `env` does not have from there.

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


def _concrete(order: tuple[type, ...], place: int) -> int:
    """The place of the class or, if no `step` is defined from there on, of the next with one."""
    defined = [i for i, cls in enumerate(order) if "step" in vars(cls) and not _is_interface(cls)]
    return min(place, max(defined, default=place))


def _is_interface(cls: type) -> bool:
    return cls in _INTERFACES or Protocol in cls.__bases__


def _is_harmless(name: str) -> bool:
    return name in HARMLESS or name.startswith("__")


def _is_another(value: Any, name: str, known: tuple[type, ...]) -> bool:
    """Whether this stands for a method or property of these classes, and is not the same."""
    original = next((vars(cls)[name] for cls in known if name in vars(cls)), None)
    is_method = callable(original) or isinstance(original, property | staticmethod | classmethod)
    return is_method and getattr(value, "__func__", value) is not original
