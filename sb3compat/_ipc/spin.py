"""Look for an answer for a while before sleeping until it comes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# After so many looks in vain in a row, there is no core to spare, or nothing to come for long.
_MISSES = 8
# For how many waits it then sleeps at once; each time that this did not help, twice as many.
_PAUSE, _LONGEST = 64, 65536


class Spin:
    """Looks again and again, for some time at most.

    A process that sleeps has to be woken up, which takes it and the one that wakes it some 20 us
    each. To look instead costs the core on which it runs: where others need that, the answer comes
    later, and not within the time. So looks in vain are counted, and after some of them it sleeps
    at once for a while.

    Args:
        seconds: How long it looks.
        clock: The time in seconds.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self._seconds, self._clock = seconds, clock
        self._misses = self._rest = 0
        self._pause = _PAUSE

    def look(self, ready: Callable[[], T]) -> T | None:
        """What `ready` returns, once that is true; None if it was not within the time."""
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
            # One more look in vain then lets it sleep for longer.
            self._misses = _MISSES - 1
            self._rest, self._pause = self._pause, min(2 * self._pause, _LONGEST)
        return None
