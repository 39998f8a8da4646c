"""Calls to workers, one at a time: a second one would take the answers that the first awaits."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import wraps
from threading import get_ident
from types import FrameType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from sb3compat._upstream.private import private
from sb3compat.errors import CallOrderError

P = ParamSpec("P")
R = TypeVar("R")


# How long a call waits for one of another thread, which may itself wait for this thread.
_PATIENCE = 10.0


class Turn:
    """Lets one call at a time speak to some workers.

    While a call is on the stack, a second one of the same thread, such as that of a signal handler,
    is refused before it touches anything; one of another thread waits. What an exception has left
    behind, at whichever line it came, is not on the stack, and holds up nobody.
    """

    def __init__(self) -> None:
        # The call under way, under one key: `setdefault` is atomic.
        self._calls: dict[str, _Call] = {}

    def __enter__(self) -> None:
        call = _Call(private(sys, "_getframe")(1), get_ident(), os.getpid())
        while self._calls.setdefault("call", call) is not call:
            self.check()

    def __exit__(self, *_: object) -> None:
        self._calls.clear()

    def check(self) -> None:
        """Wait for a call of another thread.

        Raises:
            CallOrderError: If there is one of this thread, or the other one takes too long.
        """
        until, awaited = 0.0, None
        while (call := self._calls.get("call")) is not None:
            if call is not awaited:  # the patience is for each single call
                until, awaited = time.monotonic() + _PATIENCE, call
            if not call.is_under_way():
                if self._calls.get("call") is call:
                    self._calls.clear()
                return
            if call.thread == get_ident() or time.monotonic() > until:
                raise CallOrderError(
                    "Expected one call at a time, got a second one while the first still awaits "
                    "the answers of its workers: from a step or reset of an environment, a signal "
                    "handler or another thread. Make it after the first call has returned."
                )
            time.sleep(0.001)


class _Call(NamedTuple):
    frame: FrameType
    thread: int
    process: int

    def is_under_way(self) -> bool:
        """Whether its frame is on the stack of a thread.

        Python refuses to clear a frame that is. `sys._current_frames` would tell, too, but before
        Python 3.12 it may hang when other threads start or end (python/cpython #106883).
        """
        if self.process != os.getpid() and self.thread != get_ident():
            return False  # this process is a fork, and only the thread that forked lives on in it
        try:
            self.frame.clear()
        except RuntimeError:
            return True
        return False


def one_at_a_time(method: Callable[P, R]) -> Callable[P, R]:
    """Let a method have the `_turn` of its object while it runs."""

    @wraps(method)
    def in_turn(*args: P.args, **kwargs: P.kwargs) -> R:
        self: Any = args[0]
        with self._turn:
            return method(*args, **kwargs)

    return in_turn
