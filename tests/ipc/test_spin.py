"""Looking before sleeping: how long, and when it is given up."""

from __future__ import annotations

from itertools import count
from typing import Any

from sb3compat._ipc.ready import Spin


def spin(seconds: float) -> Any:
    return Spin(seconds, count().__next__)  # a clock that goes on by a second with each look at it


class After:
    """Is true at that look; counts the looks."""

    def __init__(self, look: int) -> None:
        self.looks, self._look = 0, look

    def __call__(self) -> str:
        self.looks += 1
        return "ready" if self.looks == self._look else ""


NEVER = 10**9


def test_what_is_ready_in_time_is_returned_at_once() -> None:
    for look in (1, 3):
        ready = After(look)
        assert spin(5.0).look(ready) == "ready"
        assert ready.looks == look


def test_it_looks_for_no_longer_than_told() -> None:
    ready = After(NEVER)
    assert spin(5.0).look(ready) is None
    assert ready.looks == 6


def looked(one: Any, waits: int) -> list[int]:
    """Which of so many waits in vain looked at all."""
    found = []
    for wait in range(waits):
        ready = After(NEVER)
        one.look(ready)
        found += [wait] if ready.looks else []
    return found


def test_after_looks_in_vain_it_sleeps_at_once_and_each_time_for_longer() -> None:
    assert looked(spin(2.0), 300) == [*range(8), 72, 201]


def test_a_look_that_was_not_in_vain_starts_anew() -> None:
    one = spin(2.0)
    looked(one, 8 + 64)
    assert one.look(After(1)) == "ready"
    assert looked(one, 80) == [*range(8), 72]
    one.look(After(1))
    assert looked(one, 7) == []  # it rests
