"""Calls to workers, one at a time: a second one would take the answers that the first awaits."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Any, Concatenate, ParamSpec, TypeVar

from sb3compat.errors import CallOrderError

P = ParamSpec("P")
R = TypeVar("R")


class Turn:
    """Refuses a call to some workers while another one is on the stack, of whichever thread.

    Such a call comes from a method of an environment in this process, from a signal handler or from
    another thread. It is refused before it touches anything, so that the first one goes on. What an
    exception has left behind, at whichever line it came, is not on the stack, and refuses nothing.
    """

    def __init__(self) -> None:
        # The frame of the call, under one key: `setdefault` is atomic.
        self._calls: dict[str, FrameType] = {}

    def __enter__(self) -> None:
        frame = sys._getframe(1)
        if self._calls.setdefault("call", frame) is not frame:
            self.check()
            self._calls["call"] = frame

    def __exit__(self, *_: object) -> None:
        self._calls.clear()

    def check(self) -> None:
        """Refuse to go on while a call is on the stack.

        Raises:
            CallOrderError: If one is.
        """
        call = self._calls.get("call")
        if call is not None and any(_is_in(call, top) for top in sys._current_frames().values()):
            raise CallOrderError(
                "Expected one call at a time, got a second one while the first still awaits the "
                "answers of its workers: from a step or reset of an environment, a signal handler "
                "or another thread. Make it after the first call has returned."
            )


def _is_in(call: FrameType, top: FrameType | None) -> bool:
    """Whether a frame is on the stack below another one."""
    while top is not None and top is not call:
        top = top.f_back
    return top is call


def one_at_a_time(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Let a method have the `_turn` of its object while it runs."""

    @wraps(method)
    def in_turn(self: Any, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._turn:
            return method(self, *args, **kwargs)

    return in_turn
