"""Which workers have something to read, or have ended; over `multiprocessing` pipes."""

from __future__ import annotations

import select
import time
from collections.abc import Iterable, Mapping
from multiprocessing.connection import wait
from typing import Any, NamedTuple

from sb3compat._convert.types import ConnectionLike, ProcessLike

# What `poll` and selectors are asked to wait at most; they take milliseconds in a C int.
WAIT_SECONDS = 100_000.0


class Line(NamedTuple):
    """The parent's end of a worker's pipe, and the worker's process."""

    pipe: ConnectionLike
    process: ProcessLike


# Windows waits for 63 handles at most, and a worker has two.
_MOST_HANDLES = 60
_TURN_SECONDS = 0.01


class WaitReady:
    """Which of some workers have answered or ended; by `multiprocessing.connection.wait`."""

    def __init__(self, lines: Mapping[int, Line], rows: Iterable[int]) -> None:
        self._lines = {row: lines[row] for row in rows}

    def wait(self, timeout: float | None) -> list[int]:
        """The rows that have answered or ended; none after the timeout."""
        rows: dict[Any, int] = {}
        for row, line in self._lines.items():
            rows[line.pipe] = rows[line.process.sentinel] = row
        items = list(rows)
        parts = [items[i : i + _MOST_HANDLES] for i in range(0, len(items), _MOST_HANDLES)]
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            for part in parts:
                left = None if until is None else max(0.0, until - time.monotonic())
                # One part alone is waited for; several take turns.
                turn = _TURN_SECONDS if left is None else min(left, _TURN_SECONDS)
                ready = wait(part, left if len(parts) == 1 else turn)
                if ready:
                    return list(dict.fromkeys(rows[item] for item in ready))
            if until is not None and time.monotonic() >= until:
                return []

    def has_answer(self, row: int) -> bool:
        """Whether something can be read from the row's pipe: an answer, or its end."""
        pipe: Any = self._lines[row].pipe
        return bool(wait([pipe], 0))

    def forget(self, row: int) -> None:
        """Wait for this row no more."""
        del self._lines[row]


class PollReady:
    """The same by `poll`, where there is one: a small part of the time that `wait` takes.

    `wait` builds a selector for each call, which would double the time of a quick step.
    """

    def __init__(self, lines: Mapping[int, Line], rows: Iterable[int]) -> None:
        self._poll = select.poll()
        self._rows: dict[int, int] = {}
        self._pipes: dict[int, int] = {}
        self._sentinels: dict[int, int] = {}
        # What the last `wait` has found.
        self._seen: list[int] = []
        for row in rows:
            self._pipes[row] = pipe = lines[row].pipe.fileno()
            self._sentinels[row] = sentinel = lines[row].process.sentinel
            for descriptor in (pipe, sentinel):
                self._rows[descriptor] = row
                self._poll.register(descriptor, READABLE)

    def wait(self, timeout: float | None) -> list[int]:
        """The rows that have answered or ended; none after the timeout."""
        self._seen = [descriptor for descriptor, _ in self._poll.poll(milliseconds(timeout))]
        return list(dict.fromkeys(map(self._rows.__getitem__, self._seen)))

    def has_answer(self, row: int) -> bool:
        """Whether something can be read from the row's pipe: an answer, or its end."""
        if self._pipes[row] in self._seen:  # mostly: one system call less
            return True
        return bool(polled({self._pipes[row]: READABLE}, 0))

    def forget(self, row: int) -> None:
        """Wait for this row no more."""
        for descriptor in (self._pipes[row], self._sentinels[row]):
            self._poll.unregister(descriptor)


if hasattr(select, "poll"):
    READABLE = select.POLLIN | select.POLLPRI


def milliseconds(seconds: float | None) -> int | None:
    """Rounded up, so that a short rest of the time is not spun away."""
    return None if seconds is None else int(1000 * min(seconds, WAIT_SECONDS)) + 1


def polled(events: Mapping[int, int], wait_for: int | None) -> list[int]:
    """The descriptors at which one of their events has come.

    Args:
        events: What to look for, by descriptor.
        wait_for: How many milliseconds to wait at most; None for ever.
    """
    poll = select.poll()
    for number, mask in events.items():
        poll.register(number, mask)
    return [number for number, _ in poll.poll(wait_for)]
