"""The versions that a report names."""

from __future__ import annotations

import platform
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from sb3compat.conformance.contract import CONTRACT_VERSION

_PACKAGES = ("sb3compat", "gymnasium", "stable-baselines3", "numpy")


def versions() -> dict[str, str]:
    """The versions of the contract, of Python and of the libraries that a result depends on."""
    found = {"contract": str(CONTRACT_VERSION)}
    found |= {"python": platform.python_version(), "platform": sys.platform}
    return found | {package: installed(package) or "not installed" for package in _PACKAGES}


@cache  # reading it takes a millisecond, and each finding is looked up among the known ones
def installed(package: str) -> str:
    """The version of a package; empty if it is not there."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
