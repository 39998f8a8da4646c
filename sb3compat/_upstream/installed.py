"""Which libraries are installed, and in which versions, without importing them."""

from __future__ import annotations

import platform
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version

# The names of distributions that differ from the names of their modules.
_DISTRIBUTIONS = {"stable_baselines3": "stable-baselines3", "ale_py": "ale-py"}


def installed_version(library: str) -> str | None:
    """The version of a library; for a module of Python itself, Python's. None if not installed."""
    if library in sys.stdlib_module_names:
        return platform.python_version()
    try:
        return version(_DISTRIBUTIONS.get(library, library))
    except PackageNotFoundError:
        return None


def installed(library: str) -> str:
    """A library and its version, for messages."""
    name, found = _DISTRIBUTIONS.get(library, library), installed_version(library)
    name = "Python" if library in sys.stdlib_module_names else name
    return name if found is None else f"{name} {found}"


def release(text: str) -> tuple[int, int]:
    """Major and minor version."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


@cache
def gymnasium_release() -> tuple[int, int]:
    """The major and minor version of Gymnasium that is installed."""
    return release(version("gymnasium"))
