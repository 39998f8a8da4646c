"""Reading private names: one that is missing is an error that says so, never a default."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from sb3compat._convert.types import Value
from sb3compat.errors import UpstreamError

_DISTRIBUTIONS = {"stable_baselines3": "stable-baselines3", "ale_py": "ale-py"}


def private(owner: object, name: str, *, of: str = "") -> Value:
    """The private attribute `name` of `owner`.

    Args:
        owner: An object, class or module of another library.
        name: The attribute.
        of: The module that should define it, where `owner` is an instance of a subclass.

    Raises:
        UpstreamError: If it is missing; the message names the library and its version.
    """
    try:
        return getattr(owner, name)
    except AttributeError as error:
        raise missing(name, owner, of=of) from error


def missing(name: str, owner: object, *, of: str = "") -> UpstreamError:
    """The error to raise where a name of another library is missing."""
    cls = owner if isinstance(owner, type) else type(owner)
    library = (of or getattr(owner, "__name__", cls.__module__)).partition(".")[0]
    return UpstreamError(
        f"Expected {name!r} of {_named(owner, cls)}, a private name of {installed(library)} that "
        "sb3compat relies on, but it is not there. Run `sb3compat versions`: it says which "
        "versions are supported, and what else is missing."
    )


def installed(library: str) -> str:
    """A library and its version, for messages; for what comes with Python, that."""
    if library in sys.stdlib_module_names:
        return f"Python {platform.python_version()}"
    name, found = _DISTRIBUTIONS.get(library, library), installed_version(library)
    return name if found is None else f"{name} {found}"


def installed_version(library: str) -> str | None:
    """The version of a library, without importing it; None if that is not known."""
    if library in sys.stdlib_module_names:
        return platform.python_version()
    try:
        return version(_DISTRIBUTIONS.get(library, library))
    except PackageNotFoundError:
        return None


def _named(owner: object, cls: type) -> str:
    if isinstance(owner, type) or not hasattr(owner, "__name__"):
        return f"{cls.__module__}.{cls.__qualname__}"
    return str(owner.__name__)
