"""Calls to workers, one at a time: a second one would take the answers that the first awaits."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import wraps
from threading import get_ident
from types import FrameType
from typing import Any, ParamSpec, TypeVar

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
        # The frame of the call, under one key: `setdefault` is atomic.
        self._calls: dict[str, FrameType] = {}

    def __enter__(self) -> None:
        frame = private(sys, "_getframe")(1)
        while self._calls.setdefault("call", frame) is not frame:
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
            tops: dict[int, FrameType] = private(sys, "_current_frames")()
            thread = next((each for each, top in tops.items() if _is_in(call, top)), None)
            if thread is None:
                if self._calls.get("call") is call:
                    self._calls.clear()
                return
            if thread == get_ident() or time.monotonic() > until:
                raise CallOrderError(
                    "Expected one call at a time, got a second one while the first still awaits "
                    "the answers of its workers: from a step or reset of an environment, a signal "
                    "handler or another thread. Make it after the first call has returned."
                )
            time.sleep(0.001)


def _is_in(call: FrameType, top: FrameType | None) -> bool:
    """Whether a frame is on the stack below another one."""
    while top is not None and top is not call:
        top = top.f_back
    return top is call


def one_at_a_time(method: Callable[P, R]) -> Callable[P, R]:
    """Let a method have the `_turn` of its object while it runs."""

    @wraps(method)
    def in_turn(*args: P.args, **kwargs: P.kwargs) -> R:
        self: Any = args[0]
        with self._turn:
            return method(*args, **kwargs)

    return in_turn
