"""Which versions of Gymnasium and SB3 are supported, as pairs, and which are installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import gymnasium as gym

from sb3compat._upstream.pairs import PAIRS


def release(text: str) -> tuple[int, int]:
    """Major and minor version."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


GYMNASIUM = release(gym.__version__)


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
