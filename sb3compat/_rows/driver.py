"""Detect that other code has used an environment since its adapter used it last.

The state that the adapter keeps is then out of date: which rows have ended, and the last
observations. Use by another adapter is detected, and so are direct calls of environments that store
a new object in each step or reset. Direct calls of other environments are not detected.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from operator import is_
from typing import Any

from gymnasium.vector import SyncVectorEnv

from sb3compat._convert.types import holds_vec_env, is_own_vec_env
from sb3compat._upstream.private import private
from sb3compat._upstream.sync_vector_env import autoreset_flags, held_observations
from sb3compat._upstream.vec_env import is_plain, keeps_infos
from sb3compat.errors import CallOrderError

# The attribute of the environment that says which adapter has reset it last.
NAME = "_sb3compat_driver"

# The environments whose direct calls are detected. No functions are stored, as an adapter may be
# copied or pickled.
_KINDS: dict[str, Callable[[Any], bool]] = {
    "SyncVectorEnv": lambda base: isinstance(base, SyncVectorEnv),
    "DummyVecEnv": lambda base: keeps_infos(base, "DummyVecEnv", "buf_infos"),
    "SubprocVecEnv": lambda base: keeps_infos(base, "SubprocVecEnv"),
    "adapter": lambda base: is_own_vec_env(base) or holds_vec_env(base),
}

# Pickling makes other objects of the same numbers.
_NUMBERS = (int, float, complex)


class Driver:
    """Makes sure that only one adapter steps an environment.

    Args:
        env: The `VecEnv` or `VectorEnv`, with its wrappers.
    """

    def __init__(self, env: Any) -> None:
        self._base: Any = getattr(env, "unwrapped", env)
        self._kind = next((kind for kind, is_one in _KINDS.items() if is_one(self._base)), None)
        self._plain_dummy = is_plain(self._base, "DummyVecEnv")
        # None before the first call, and where the environment takes no attribute.
        self._token: object = None
        self._seen: tuple[object, ...] = ()

    def take(self) -> None:
        """Register this adapter as the one that drives the environment.

        Called after its reset.
        """
        # One for all of its resets: the environment may put back an earlier state of its own.
        token = self._token or object()
        with suppress(AttributeError, TypeError):
            # Not by its own `__setattr__`, which may refuse names that it does not know.
            object.__setattr__(self._base, NAME, token)
            self._token = token
        self.note()

    def note(self) -> None:
        """Store the environment's state after a call of this adapter, for `check`."""
        if self._plain_dummy:
            # An equal one, which is replaced even where the sub-environment returns the same dict
            # from each step or reset.
            for infos in (private(self._base, "buf_infos"), self._base.reset_infos):
                if isinstance(infos[0], dict):
                    infos[0] = dict(infos[0])
        self._seen = self._look()

    def check(self) -> None:
        """Raise an error if other code has stepped or reset the environment.

        Raises:
            CallOrderError: If another adapter has reset the environment since this one has, or it
                was stepped or reset directly.
        """
        who = self.other()
        if who is not None:
            raise CallOrderError(
                f"Expected reset() before anything else, as {who} {self._base} since this adapter "
                "used it last: the state that the adapter keeps for the rows is out of date. Use "
                "the environment only through one adapter; or make a second environment, for "
                "example for evaluation."
            )

    def other(self) -> str | None:
        """Which other code has used the environment, in words; None if there is none."""
        if self._token is None:
            return None
        if getattr(self._base, NAME, self._token) is not self._token:
            return "another adapter has reset or stepped"
        look = self._look()
        # In the usual case nothing is different; `map` is quick enough to ask in each step.
        if not all(map(is_, look, self._seen)):
            for now, before in zip(look, self._seen, strict=True):
                if now is not before and not _is_same_number(now, before):
                    return "someone has stepped or reset"
        return None

    def _look(self) -> tuple[object, ...]:
        base = self._base
        if self._kind == "DummyVecEnv":
            return private(base, "buf_infos")[0], base.reset_infos[0]
        if self._kind == "SyncVectorEnv":
            # A masked reset leaves the flags and replaces observations.
            return (autoreset_flags(base), *held_observations(base))
        if self._kind == "SubprocVecEnv":
            return (base.reset_infos,)
        return () if self._kind is None else (base.last_call,)


def _is_same_number(now: Any, before: Any) -> bool:
    if not type(now) is type(before) in _NUMBERS:
        return False
    return bool(now == before or (now != now and before != before))  # NaN
