"""What `sb3compat versions` prints: what is installed, and whether it fits this package."""

from __future__ import annotations

import platform
from collections.abc import Iterator

import gymnasium as gym

from sb3compat._upstream.canary import missing, skipped
from sb3compat._upstream.pairs import PAIRS
from sb3compat._upstream.private import installed_version
from sb3compat._upstream.table import Name
from sb3compat._upstream.versions import is_supported, sb3_version

# What the exit code says.
FINE, MISSING, UNTESTED = 0, 1, 3

_LIBRARIES = (
    "gymnasium",
    "stable_baselines3",
    "numpy",
    "cloudpickle",
    "torch",
    "jax",
    "ale_py",
    "envpool",
)


def print_versions(own_version: str) -> int:
    """Print the versions found, whether they are supported, and the private names not found.

    Args:
        own_version: The version of this package.

    Returns:
        0 if all is well; 1 if a name is missing; 3 if nothing is missing, but the versions of
        Gymnasium and Stable-Baselines3 are no supported pair.
    """
    versions = {"Python": platform.python_version(), "sb3compat": own_version}
    versions |= {library: installed_version(library) or "not installed" for library in _LIBRARIES}
    gone = missing()
    supported = is_supported(sb3_version(), gym.__version__)
    for library, version in versions.items():
        print(f"{library:20}{version}")
    for line in _findings(gone, supported=supported):
        print(line)
    if gone:
        return MISSING
    return FINE if supported else UNTESTED


def _findings(gone: list[Name], *, supported: bool) -> Iterator[str]:
    yield ""
    if supported:
        yield "Gymnasium and Stable-Baselines3 are a supported pair."
    else:
        yield f"Gymnasium and Stable-Baselines3 are not a supported pair. Supported: {_pairs()}."
    if skipped():
        yield f"Not looked into, as they are not installed: {', '.join(skipped())}."
    if not gone:
        yield "Every private name that sb3compat relies on is there."
        return
    yield f"Missing, of the private names that sb3compat relies on: {len(gone)}."
    for name in gone:
        yield ""
        yield from description(name)
    yield ""
    yield "Install supported versions, or a version of sb3compat that knows the installed ones."


def description(name: Name) -> list[str]:
    """What is missing, what goes wrong without, and what to look at, in a few lines."""
    return [
        f"{name.kind.value} {name.name}",
        f"  expected in  {name.where} ({name.library} {installed_version(name.library)})",
        f"  without it   {name.why}",
        f"  used in      sb3compat/{name.used_in}",
    ]


def _pairs() -> str:
    return ", ".join(
        f"Gymnasium {gymnasium} {'without it' if sb3 is None else f'with {sb3}'}"
        for sb3, gymnasium in PAIRS
    )
