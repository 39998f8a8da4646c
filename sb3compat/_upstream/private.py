"""Access to private names. A missing name is an error that names it; there are no defaults."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from sb3compat._upstream.installed import installed
from sb3compat.errors import UpstreamError

# The libraries whose classes our objects may derive from, in the order of precedence.
_LIBRARIES = ("gymnasium", "stable_baselines3", "ale_py", "envpool", "pickle", "multiprocessing")


def private(owner: object, name: str) -> Any:
    """The private attribute `name` of `owner`; `table.py` has every name that is asked for.

    Args:
        owner: An object, class or module of another library, or an instance of a subclass.
        name: The attribute. Outside of `_upstream/` it is a literal, which a test compares with
            the table.

    Raises:
        UpstreamError: If it is missing; the message names the library and its version.
    """
    try:
        return getattr(owner, name)
    except AttributeError as error:
        raise missing(name, owner) from error


def set_private(owner: object, name: str, value: Any) -> None:
    """Set a private attribute, which has to exist: setting a new name would have no effect.

    Raises:
        UpstreamError: If it is missing.
    """
    private(owner, name)
    setattr(owner, name, value)


def missing(name: str, owner: object) -> UpstreamError:
    """The error for a missing name of another library."""
    home, described = _home(owner)
    return UpstreamError(
        f"Expected {name!r} of {described}, a private name of {installed(home)} that "
        "sb3compat relies on, but it is not there. Run `sb3compat versions`: it says which "
        "versions are supported, and what else is missing."
    )


def _home(owner: object) -> tuple[str, str]:
    """The library from which the name was to come, and the module or class, for messages."""
    if isinstance(owner, ModuleType):
        return owner.__name__.partition(".")[0], owner.__name__
    cls = owner if isinstance(owner, type) else type(owner)
    for base in cls.__mro__:
        library = base.__module__.partition(".")[0]
        if library in _LIBRARIES:
            return library, f"{base.__module__}.{base.__qualname__}"
    return cls.__module__.partition(".")[0], f"{cls.__module__}.{cls.__qualname__}"
