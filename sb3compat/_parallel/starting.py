"""The start of workers: which function each of them calls, and for how long.

A worker writes into a pipe which function it calls. All workers of an environment have the same
pipe, as notes are short, and written only while parts are made.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from sb3compat._ipc.ready import READABLE, polled
from sb3compat._parallel.signs import TURN_SECONDS, Signs, name_of

# How many workers a message names.
_MOST_WORKERS = 4
HAS_NOTES = sys.platform != "win32"


class _At(NamedTuple):
    """Where a worker is: the number of the function, and since when it is there."""

    function: int
    since: float


_NOWHERE = _At(0, math.inf)


class Starting:
    """The parent's information about workers while they make their parts.

    Args:
        noun: The word for a worker in messages.
        shares: The functions of each worker.
        notes: The descriptor that the workers' notes come from, which does not block; None where
            there is none.
    """

    def __init__(
        self, noun: str, shares: Sequence[Sequence[Callable[[], Any]]], notes: int | None
    ) -> None:
        self._noun, self._shares, self._notes = noun, shares, notes
        self._firsts = [sum(map(len, shares[:worker])) for worker in range(len(shares))]
        self._at: dict[int, _At] = {}
        self._signs = Signs()

    def __enter__(self) -> Starting:
        return self

    def __exit__(self, *_: object) -> None:
        self._signs.clear()

    def note(self, function: int) -> None:
        """Record that this process itself calls this function now, and show it."""
        self._note(function)
        workers = range(len(self._shares))
        self._signs.tell(lambda: self._text(workers, workers, making=True))

    def watch(
        self, workers: Collection[int], owed: Collection[int], *, making: bool
    ) -> Callable[[float | None], float | None]:
        """A function to call before each wait for answers: it shows the progress of the workers.

        The function takes the number of remaining seconds, and returns how many of them to wait.

        Args:
            workers: The workers that start.
            owed: Those of them that have not answered; fewer from one call to the next.
            making: Whether they call their functions, or only start.
        """

        def watch(left: float | None) -> float | None:
            self._read()
            self._signs.tell(lambda: self._text(workers, owed, making=making))
            return TURN_SECONDS if left is None else min(left, TURN_SECONDS)

        return watch

    def late(self, workers: Sequence[int]) -> str:
        """Which function each of these workers calls, for a message."""
        self._read()
        texts = []
        for worker in workers[:_MOST_WORKERS]:
            known, where = worker in self._at, self._where(worker)
            said = "has been calling" if known else "has not reported which function it calls:"
            texts.append(f"A {self._noun} {said} {where}.")
        more = len(workers) - len(texts)
        return "\n".join([*texts, *[f"{more} more are late as well."] * bool(more)])

    def _text(self, workers: Collection[int], owed: Collection[int], *, making: bool) -> str:
        """The progress of all workers, and where those are that take longest."""
        done, count, what = len(workers) - len(owed), len(workers), "workers have started"
        if making:
            count, what = sum(len(self._shares[worker]) for worker in workers), "parts are made"
            done = sum(self._made(worker, owed) for worker in workers)
        slow = sorted(owed, key=lambda worker: self._at.get(worker, _NOWHERE).since)
        some = [f"worker {worker}: {self._where(worker)}" for worker in slow[:_MOST_WORKERS]]
        more = [f"and {len(slow) - _MOST_WORKERS} more workers"] * (len(slow) > _MOST_WORKERS)
        return "; ".join(
            [f"{done} of {count} {what}, after {self._signs.passed:.0f} s", *some, *more]
        )

    def _made(self, worker: int, owed: Collection[int]) -> int:
        """How many parts a worker has made."""
        if worker not in owed:
            return len(self._shares[worker])
        return self._at[worker].function - self._firsts[worker] if worker in self._at else 0

    def _where(self, worker: int) -> str:
        """Which function a worker calls, or which it has, and for how long."""
        at, first = self._at.get(worker), self._firsts[worker]
        if at is None:
            last = first + len(self._shares[worker]) - 1
            return f"env_fns[{first}]" + f" to env_fns[{last}]" * (last > first)
        name = name_of(self._shares[worker][at.function - first])
        return f"env_fns[{at.function}] ({name}) for {time.monotonic() - at.since:.0f} s"

    def _note(self, function: int) -> None:
        worker = max(w for w, first in enumerate(self._firsts) if first <= function)
        self._at[worker] = _At(function, time.monotonic())

    def _read(self) -> None:
        """Read the notes of the workers."""
        data = b""
        if self._notes is not None and polled({self._notes: READABLE}, 0):
            with suppress(OSError):
                data = os.read(self._notes, 1 << 20)
        for function in data.split():
            self._note(int(function))
