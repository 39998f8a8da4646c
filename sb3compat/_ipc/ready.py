"""Which workers have sent data, or have ended; over `multiprocessing` pipes."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary, finalize

from sb3compat._convert.types import ProcessLike

# Windows waits for 63 handles at most, and a worker has two.
_MOST_WORKERS = 30
# After this many unsuccessful polls in a row, there is no free core, or no answer is coming soon.
_MISSES = 8
# How many waits then sleep at once; doubled each time that the next poll was unsuccessful again.
_PAUSE, _LONGEST = 64, 65536

T = TypeVar("T")


class Line(NamedTuple):
    """The parent's end of a worker's pipe, and the worker's process."""

    pipe: Connection[Any, Any]
    process: ProcessLike


_ENDS: WeakKeyDictionary[BaseProcess, int] = WeakKeyDictionary()


def end_of(process: ProcessLike) -> int:
    """What is ready when a process has ended.

    The `sentinel` of `multiprocessing` is often a pipe, whose other end a process that the
    environment has forked holds open, as it does that of the worker's own pipe.
    """
    if not isinstance(process, BaseProcess):
        return process.sentinel
    if process not in _ENDS:
        try:
            number = os.pidfd_open(process.pid or 0)
        except (AttributeError, OSError):  # another system, or one without it; it may be gone
            return process.sentinel
        finalize(process, os.close, number)
        _ENDS[process] = number
    return _ENDS[process]


def join(process: ProcessLike, seconds: float | None) -> None:
    """Wait until a process has ended, for so many seconds at most; None for ever."""
    if wait([end_of(process)], seconds):
        process.join()


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


class PollReady:
    """Which workers have answered or ended, by `poll`.

    The workers stay registered from one message to the next. `multiprocessing.connection.wait`
    would build a selector for each call, which doubles the time of a quick step.

    Args:
        spin: Polls for answers before sleeping until they arrive.
    """

    def __init__(self, spin: Spin | None = None) -> None:
        self._spin = spin
        self._poll = select.poll()
        self._rows: dict[int, int] = {}
        # The pipe and the process of each row; added last, and removed first.
        self._numbers: dict[int, tuple[int, int]] = {}

    def add(self, row: int, line: Line) -> int:
        """Watch this worker from now on; returns the descriptor of its pipe."""
        if row in self._numbers:
            return self._numbers[row][0]
        numbers = line.pipe.fileno(), end_of(line.process)
        for number in numbers:
            self._rows[number] = row
            self._poll.register(number, READABLE)
        self._numbers[row] = numbers
        return numbers[0]

    def discard(self, row: int) -> None:
        """Look at this worker no more, until it is added again."""
        for number in self._numbers.pop(row, ()):
            self._unregister(number)

    def wait(self, rows: Collection[int], timeout: float | None) -> dict[int, int | None]:
        """Wait until some of these rows have answered or ended, or the time is over.

        Args:
            rows: The rows. Others that have something to read are no longer watched.
            timeout: How many seconds to wait at most; None for ever.

        Returns:
            Those rows, each with the descriptor of its pipe, if something can be read: an answer,
            or the pipe's end.
        """
        ready: dict[int, int | None] = {}
        poll = self._poll.poll
        events = self._spin.look(partial(poll, 0)) if self._spin else None
        for number, _ in events or poll(milliseconds(timeout)):
            row = self._rows[number]
            numbers = self._numbers.get(row)
            if numbers is None or number not in numbers:  # an interrupt has left it here
                self._unregister(number)
            elif row not in rows:
                self.discard(row)
            else:
                ready[row] = number if number == numbers[0] else ready.get(row)
        for row, readable in ready.items():
            if readable is None:  # it may have answered just before its end
                ready[row] = next(iter(polled({self._numbers[row][0]: READABLE}, 0)), None)
        return ready

    def _unregister(self, number: int) -> None:
        with suppress(KeyError):
            self._poll.unregister(number)


class WaitReady:
    """The same without `poll`, for Windows: waits for the first row only, and never spins."""

    def __init__(self, spin: Spin | None = None) -> None:
        self._lines: dict[int, Line] = {}

    def add(self, row: int, line: Line) -> int:
        """As `PollReady` does."""
        self._lines[row] = line
        return line.pipe.fileno()

    def discard(self, row: int) -> None:
        """Look at this worker no more, until it is added again."""
        self._lines.pop(row, None)

    def wait(self, rows: Collection[int], timeout: float | None) -> dict[int, int | None]:
        """As `PollReady` does."""
        found: dict[Any, int] = {}
        for row in islice((row for row in rows if row in self._lines), _MOST_WORKERS):
            found[self._lines[row].pipe] = found[end_of(self._lines[row].process)] = row
        ready = {found[item] for item in wait(list(found), timeout)}
        pipes = {row: self._lines[row].pipe for row in ready}
        return {row: pipe.fileno() if wait([pipe], 0) else None for row, pipe in pipes.items()}


HAS_POLL = hasattr(select, "poll")
if HAS_POLL:
    READABLE = select.POLLIN | select.POLLPRI


def milliseconds(seconds: float | None) -> int | None:
    """Milliseconds, rounded up, so that a short remaining time does not become a busy wait."""
    return None if seconds is None else int(1000 * seconds) + 1


def polled(events: Mapping[int, int], wait_for: int | None) -> list[int]:
    """The descriptors for which one of the given events has occurred.

    Args:
        events: The events, by descriptor.
        wait_for: How many milliseconds to wait at most; None for ever.
    """
    poll = select.poll()
    for number, mask in events.items():
        poll.register(number, mask)
    return [number for number, _ in poll.poll(wait_for)]
