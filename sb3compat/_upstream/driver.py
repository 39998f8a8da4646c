"""Notice that an environment was used by someone else since its adapter used it last.

The adapter would go on from a state that is gone: rows that have ended elsewhere, observations that
are out of date. There are marks for another adapter, and for direct calls of environments that
store a new object in each step or reset. Direct calls of others are not noticed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from gymnasium.vector import SyncVectorEnv

from sb3compat._convert.types import holds_vector_env
from sb3compat._upstream.private import private
from sb3compat._upstream.sync_vector_env import autoreset_flags
from sb3compat._upstream.vec_env import derives_from, is_plain
from sb3compat.errors import CallOrderError

# The attribute of the environment that says which adapter has reset it last.
NAME = "_sb3compat_driver"

Marks = Callable[[], tuple[object, ...]]


class Driver:
    """The place of an adapter at the wheel.

    Args:
        env: The `VecEnv` or `VectorEnv`, with its wrappers.
    """

    def __init__(self, env: Any) -> None:
        self._base: Any = getattr(env, "unwrapped", env)
        self._look = _marks_of(self._base)
        self._plain_dummy = is_plain(self._base, "DummyVecEnv")
        # None before the first reset, and where the environment takes no attribute.
        self._token: object = None
        self._seen: tuple[object, ...] = ()

    def take(self) -> None:
        """Take the wheel, after a reset by this adapter."""
        token = object()
        with suppress(AttributeError):
            setattr(self._base, NAME, token)
            self._token = token
        self.note()

    def note(self) -> None:
        """Take note of the state that this adapter leaves behind."""
        if self._plain_dummy:
            # Overwritten by each step of its own, and read by none.
            private(self._base, "buf_infos")[0] = {}
        self._seen = self._look()

    def check(self) -> None:
        """Refuse to go on where someone else was at the wheel.

        Raises:
            CallOrderError: If another adapter has reset the environment since this one has, or it
                was stepped or reset directly.
        """
        if self._token is None:
            return
        other = getattr(self._base, NAME, None) is not self._token
        if other or any(a is not b for a, b in zip(self._look(), self._seen, strict=True)):
            who = "another adapter has reset" if other else "someone has stepped or reset"
            raise CallOrderError(
                f"Expected reset() before anything else, as {who} {self._base} since this adapter "
                "used it last: what it knows of the rows is out of date. Use one adapter, and only "
                "the adapter; or make a second environment, for example for evaluation."
            )


def _marks_of(base: Any) -> Marks:
    if isinstance(base, SyncVectorEnv):
        look: Callable[[Any], tuple[object, ...]] = _sync_marks
    elif derives_from(base, "DummyVecEnv"):
        look = _dummy_marks
    elif derives_from(base, "SubprocVecEnv") or holds_vector_env(base):
        look = _reset_marks
    else:
        look = _no_marks
    # No closure: a copy of the adapter has to look at the copy of the environment.
    return partial(look, base)


def _sync_marks(base: Any) -> tuple[object, ...]:
    return (autoreset_flags(base),)


def _dummy_marks(base: Any) -> tuple[object, ...]:
    return private(base, "buf_infos")[0], base.reset_infos[0]


def _reset_marks(base: Any) -> tuple[object, ...]:
    return (base.reset_infos,)


def _no_marks(base: Any) -> tuple[object, ...]:
    return ()
