"""The time of a run: what has passed, and what the user allows."""

from __future__ import annotations

import math
import time

# What runs when the time is over is cut off so many seconds later.
GRACE = 3.0
# The construction, which imports libraries; if it is cut off nothing follows.
GRACE_TO_MAKE = 7.0
# The shortest time limit.
_LEAST = 0.1


class Clock:
    """The time of a run; it goes only within `with`, as pytest runs other tests between checks.

    Args:
        limit: The seconds that the user allows; None for no limit.

    Attributes:
        limit: The same, infinite for no limit.
    """

    def __init__(self, limit: float | None = None) -> None:
        self.limit = math.inf if limit is None else limit
        self._before = 0.0
        self._begin: float | None = None

    def __enter__(self) -> None:
        self._begin = time.perf_counter()

    def __exit__(self, *exception: object) -> None:
        self._before, self._begin = self.passed, None

    @property
    def passed(self) -> float:
        """The seconds so far."""
        if self._begin is None:
            return self._before
        return self._before + time.perf_counter() - self._begin

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self.limit - self.passed

    def within(self, seconds: float, grace: float = GRACE) -> float:
        """So many seconds as the limit of a wait, or fewer if the run ends before that."""
        return max(min(seconds, self.left + grace), _LEAST)
