"""Poll for an answer for a while before sleeping until it arrives."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# After this many unsuccessful polls in a row, there is no free core, or no answer is coming soon.
_MISSES = 8
# How many waits then sleep at once; doubled each time that the next poll was unsuccessful again.
_PAUSE, _LONGEST = 64, 65536


class Spin:
    """Polls again and again, for a limited time.

    Waking a sleeping process takes about 20 us in this process, and as long in the process that
    wakes it. Polling instead occupies a core: if other processes need that core, the answer comes
    later, and not within the time limit. So unsuccessful polls are counted, and after some of them
    the process sleeps at once for a while.

    Args:
        seconds: How long it polls.
        clock: The time in seconds.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self._seconds, self._clock = seconds, clock
        self._misses = self._rest = 0
        self._pause = _PAUSE

    def look(self, ready: Callable[[], T]) -> T | None:
        """The result of `ready` once it is true; None if it was not true within the time limit."""
        if self._rest:
            self._rest -= 1
            return None
        until = self._clock() + self._seconds
        while True:
            found = ready()
            if found:
                self._misses, self._pause = 0, _PAUSE
                return found
            if self._clock() > until:
                break
        self._misses += 1
        if self._misses >= _MISSES:
            # The next unsuccessful poll then makes it sleep for longer.
            self._misses = _MISSES - 1
            self._rest, self._pause = self._pause, min(2 * self._pause, _LONGEST)
        return None
