"""Environments in which a call has not come to its end, so that its results may still come."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from sb3compat._convert.types import AnyVectorEnv
from sb3compat.errors import WorkerError

_unfinished: WeakSet[Any] = WeakSet()


def note(env: AnyVectorEnv) -> None:
    """Note that a call begins; before it does, so that an exception anywhere leaves the note."""
    _unfinished.add(env)


def forget(env: AnyVectorEnv) -> None:
    """Note that the call has come to its end, and nothing is still to come."""
    _unfinished.discard(env)


def is_unfinished(env: AnyVectorEnv) -> bool:
    """Whether a call has not come to its end."""
    return env in _unfinished


def check_finished(env: AnyVectorEnv) -> None:
    """Refuse an environment whose last results may still come.

    Raises:
        WorkerError: If they may.
    """
    if env in _unfinished:
        raise WorkerError(
            f"Expected {env} with no call under way, but an earlier one has raised an exception or "
            "was interrupted, and its results may still come. Close this environment and build a "
            "new one."
        )
