"""Which versions of Gymnasium and SB3 are supported, as pairs, and which are installed."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version

# SB3 (None: without it) and Gymnasium. The nightly run tests each. Imported where neither is
# installed, so the versions are read from the metadata.
PAIRS: tuple[tuple[str | None, str], ...] = (
    ("2.6", "1.1"),
    ("2.7", "1.2"),
    ("2.8", "1.2"),
    ("2.9", "1.3"),
    ("2.9", "1.4"),
    (None, "1.4"),
)


def release(text: str) -> tuple[int, int]:
    """Major and minor version."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


@cache
def gymnasium_release() -> tuple[int, int]:
    """The major and minor version of Gymnasium that is installed."""
    return release(version("gymnasium"))


def sb3_version() -> str | None:
    """The version of SB3 that is installed, without importing it; None without SB3."""
    try:
        return version("stable-baselines3")
    except PackageNotFoundError:
        return None


def is_supported(sb3: str | None, gymnasium: str) -> bool:
    """Whether these two are a supported pair."""
    ours = None if sb3 is None else release(sb3)
    return any(
        (None if known is None else release(known)) == ours and release(other) == release(gymnasium)
        for known, other in PAIRS
    )
