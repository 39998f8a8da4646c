"""Autoreset modes as users and environments write them down."""

from __future__ import annotations

from typing import Any

from gymnasium.vector import AutoresetMode

from sb3compat._convert.types import AnyVectorEnv, inside_wrappers
from sb3compat.errors import AutoresetModeError, nearest

NAMES = [mode.value for mode in AutoresetMode]


def parse_mode(value: object, what: str = "autoreset_mode") -> AutoresetMode:
    """The autoreset mode given by its member, value or name.

    Args:
        value: An `AutoresetMode`, `"NextStep"` or `"NEXT_STEP"`, and so on.
        what: The name of the value, for the message.

    Raises:
        AutoresetModeError: If the value is no autoreset mode.
    """
    for mode in AutoresetMode:
        if names_mode(value, mode):
            return mode
    got = f"{what}={value!r}" if what.isidentifier() else repr(value)
    raise AutoresetModeError(
        f"Expected {what} to be one of {NAMES}, got {got} ({type(value).__name__})."
        + nearest(value, NAMES, "Pass one of these.")
    )


def declared_mode(env: AnyVectorEnv) -> object:
    """The mode that an environment declares, on the instance or in its metadata; None if neither.

    The metadata come last since they are often a dict shared by a class, in which a second
    environment overwrites what the first one declared (Gymnasium up to 1.3, ale-py).
    """
    base: Any = inside_wrappers(env)
    own: object = getattr(base, "autoreset_mode", None)
    return (base.metadata or {}).get("autoreset_mode") if own is None else own


def names_mode(value: object, mode: AutoresetMode) -> bool:
    """Whether `value` is this mode, or its value or name."""
    return value is mode or (isinstance(value, str) and value in (mode.value, mode.name))
