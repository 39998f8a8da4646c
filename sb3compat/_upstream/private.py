"""Reading private names: one that is missing is an error that says so, never a default."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

from sb3compat._convert.types import Value
from sb3compat.errors import UpstreamError

_DISTRIBUTIONS = {"stable_baselines3": "stable-baselines3", "ale_py": "ale-py"}
_LIBRARIES = ("gymnasium", "stable_baselines3", "ale_py", "envpool", "pickle", "multiprocessing")


def private(owner: object, name: str) -> Value:
    """The private attribute `name` of `owner`.

    Args:
        owner: An object, class or module of another library, or an instance of a subclass.
        name: The attribute.

    Raises:
        UpstreamError: If it is missing; the message names the library and its version.
    """
    try:
        return getattr(owner, name)
    except AttributeError as error:
        raise missing(name, owner) from error


def set_private(owner: object, name: str, value: Value) -> None:
    """Set a private attribute, which has to be there: another name would be set for nobody.

    Raises:
        UpstreamError: If it is missing.
    """
    private(owner, name)
    setattr(owner, name, value)


def missing(name: str, owner: object) -> UpstreamError:
    """The error to raise where a name of another library is missing."""
    home, described = _home(owner)
    return UpstreamError(
        f"Expected {name!r} of {described}, a private name of {installed(home)} that sb3compat "
        "relies on, but it is not there. Run `sb3compat versions`: it says which versions are "
        "supported, and what else is missing."
    )


def installed(library: str) -> str:
    """A library and its version, for messages; for a module of Python itself, Python's."""
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
