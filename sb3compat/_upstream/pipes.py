"""Messages to worker processes and their answers, over `multiprocessing` pipes.

Written once for the workers of `AsyncVectorEnv` and of `SubprocVecEnv`. One deadline covers the
whole exchange, and dead processes are noticed whoever else holds an end of their pipe.
"""

from __future__ import annotations

import os
import pickle
import select
import time
from collections.abc import Iterable, Mapping, Sequence
from multiprocessing.connection import wait
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

from sb3compat._convert.types import ConnectionLike, ProcessLike, Value
from sb3compat._upstream.framing import Answer, header
from sb3compat.errors import WorkerError

# What `poll` and selectors are asked to wait at most; they take milliseconds in a C int.
_WAIT_SECONDS = 100_000.0
# What surely fits into the buffer of a pipe, so that sending it cannot block.
_SURE_BYTES = 4096


class Line(NamedTuple):
    """The parent's end of a worker's pipe, and the worker's process."""

    pipe: ConnectionLike
    process: ProcessLike


def lines_of(
    pipes: Sequence[Any], processes: Sequence[ProcessLike], rows: Iterable[int]
) -> dict[int, Line]:
    """The lines to the workers of some rows."""
    return {row: Line(pipes[row], processes[row]) for row in rows}


class Deadline:
    """The end of the time that something may take; with None, there is none.

    Args:
        timeout: The time in seconds, from now.

    Attributes:
        timeout: The same.
    """

    def __init__(self, timeout: float | None) -> None:
        self.timeout = timeout
        self._until = None if timeout is None else time.monotonic() + timeout

    def left(self) -> float | None:
        """How many seconds are left, at least 0."""
        return None if self._until is None else max(0.0, self._until - time.monotonic())


def died(row: int) -> WorkerError:
    """The error to raise where a worker has died."""
    return WorkerError(
        f"The worker process of row {row} has died without an answer; its own output may say why. "
        "Close this environment and build a new one."
    )


def pickled(message: Value) -> bytes:
    """A message as it goes down a pipe.

    Pickle all messages before the first is sent: one that cannot be pickled then leaves all workers
    untouched.
    """
    return bytes(ForkingPickler.dumps(message))


# Windows waits for 63 handles at most, and a worker has two.
_MOST_HANDLES = 60
_TURN_SECONDS = 0.01
# How long a process may take to end once it was terminated.
_TERMINATE_SECONDS = 2.0


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
                self._poll.register(descriptor, _READABLE)

    def wait(self, timeout: float | None) -> list[int]:
        """The rows that have answered or ended; none after the timeout."""
        self._seen = [descriptor for descriptor, _ in self._poll.poll(_milliseconds(timeout))]
        return list(dict.fromkeys(map(self._rows.__getitem__, self._seen)))

    def has_answer(self, row: int) -> bool:
        """Whether something can be read from the row's pipe: an answer, or its end."""
        if self._pipes[row] in self._seen:  # mostly: one system call less
            return True
        alone = select.poll()
        alone.register(self._pipes[row], _READABLE)
        return bool(alone.poll(0))

    def forget(self, row: int) -> None:
        """Wait for this row no more."""
        for descriptor in (self._pipes[row], self._sentinels[row]):
            self._poll.unregister(descriptor)


if hasattr(select, "poll"):
    _READABLE = select.POLLIN | select.POLLPRI


def _milliseconds(seconds: float | None) -> int | None:
    """Rounded up, so that a short rest of the time is not spun away."""
    return None if seconds is None else int(1000 * min(seconds, _WAIT_SECONDS)) + 1


def end_processes(processes: Iterable[ProcessLike]) -> None:
    """Terminate processes, and kill those that survive it.

    A worker survives where its parent had a handler for SIGTERM: SDL's, for instance, once pygame
    has shown something.
    """
    processes = list(processes)
    for process in processes:
        process.terminate()
    until = time.monotonic() + _TERMINATE_SECONDS
    for process in processes:
        process.join(max(0.0, until - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join()


def is_writable(pipe: ConnectionLike) -> bool:
    """Whether a short message can be sent without a wait; True where that cannot be known."""
    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(pipe.fileno(), select.POLLOUT)
    return bool(poll.poll(0))


def lost_worker(error: Exception) -> bool:
    """Whether the exception of a pipe says that its other end is gone.

    The handler of a signal may raise an OSError too; that has no number, or one that no pipe has.
    """
    if isinstance(error, OSError):
        return error.errno is not None and not isinstance(error, TimeoutError)
    return isinstance(error, EOFError)


class Exchange:
    """One message to each of some workers, and their answers.

    A worker sends one answer to each message, and nothing else.

    Args:
        lines: The workers, by row.

    Attributes:
        owed: The rows that were sent a message and have not answered, each with what was read of
            its answer. A row is noted before its message is sent, and forgotten when its whole
            answer was read, so that an exception at any line leaves no answer unaccounted for.
        answers: The answers that have come, by row.
        dead: The rows whose worker has died before it answered, with what showed it.
        late: The rows to which the message could not be sent in time; they are `owed`, too.
    """

    ready_class: type[WaitReady | PollReady] = (
        PollReady if hasattr(select, "poll") else WaitReady  # Windows
    )
    # How long the others may take once a worker has died: what they wait for may never come.
    grace_seconds = 5.0

    def __init__(self, lines: Mapping[int, Line]) -> None:
        self._lines = lines
        self.owed: dict[int, Answer | None] = {}
        self.answers: dict[int, Any] = {}
        self.dead: dict[int, Exception] = {}
        self.late: set[int] = set()

    def send(self, messages: Mapping[int, bytes], timeout: float | None = None) -> None:
        """Send each row its message, pickled already.

        Args:
            messages: The messages, by row.
            timeout: How many seconds all of them together may take; None for ever. A worker that
                hangs does not read, and a long message then fills its pipe.
        """
        deadline = Deadline(timeout)
        for row, message in messages.items():
            self.owed[row] = None
            try:
                if len(message) <= _SURE_BYTES:
                    self._lines[row].pipe.send_bytes(message)
                elif not self._send_long(row, message, deadline):
                    self.late.add(row)
            except (EOFError, OSError) as error:
                if not lost_worker(error):
                    raise
                self._bury(row, error)

    def _send_long(self, row: int, message: bytes, deadline: Deadline) -> bool:
        """Send a message that may not fit into the pipe; False if it was not read in time.

        A long message to a worker that is dead would block for ever where another worker, forked
        from the same parent, holds the other end of its pipe.
        """
        pipe, process = self._lines[row]
        if not hasattr(select, "poll"):
            if wait([process.sentinel], 0):
                raise self._ended(row)
            pipe.send_bytes(message)
            return True
        number, sentinel = pipe.fileno(), process.sentinel
        poll = select.poll()
        poll.register(number, select.POLLOUT)
        poll.register(sentinel, _READABLE)
        rest = memoryview(header(len(message)) + message)
        while rest:
            ready = dict(poll.poll(_milliseconds(deadline.left())))
            if sentinel in ready:
                raise self._ended(row)
            if number in ready:
                rest = rest[os.write(number, rest[:_SURE_BYTES]) :]
            elif deadline.left() == 0:
                return False
        return True

    def receive(self, timeout: float | None = None) -> None:
        """Take the answers that are owed.

        Every answer that comes is taken, also after one that is an error, so that none is left to
        be taken for the next one. What has not come within the time is still `owed`.

        Args:
            timeout: How many seconds all of them together may take; None for ever. Once a worker
                has died, the others get some seconds.
        """
        for row in [row for row, answer in self.owed.items() if answer is not None]:
            self._take_read(row)  # before an exception
        if not self.owed:
            return
        ready = self.ready_class(self._lines, self.owed)
        deadline = Deadline(timeout)
        grace = Deadline(self.grace_seconds if self.dead else None)
        while self.owed:
            limits = [limit for limit in (deadline.left(), grace.left()) if limit is not None]
            left = min(limits) if limits else None
            rows = ready.wait(None if left is None else min(left, _WAIT_SECONDS))
            if not rows and left is not None and left <= _WAIT_SECONDS:
                break
            for row in rows:
                self._take(row, ready)
            if self.dead and grace.left() is None:
                grace = Deadline(self.grace_seconds)

    def receive_one(self, row: int) -> None:
        """Take the answer of one row, or notice that a worker has died that owes one.

        Once a worker has died, what the others wait for may never come.
        """
        self._take_read(row)
        while row in self.owed and not self.dead:
            alone = self.ready_class(self._lines, [row])
            if alone.has_answer(row):
                self._take(row, alone)
            else:
                self._await(row)

    def _await(self, row: int) -> None:
        """Wait until there is something to read for this row, or any worker has died."""
        ready = self.ready_class(self._lines, self.owed)
        while True:
            for each in ready.wait(None):
                if each == row and ready.has_answer(row):
                    return
                if not ready.has_answer(each):
                    self._bury(each, self._ended(each))
                    return
                ready.forget(each)

    def _take(self, row: int, ready: WaitReady | PollReady) -> None:
        """Read what has come of an answer."""
        try:
            # A process that has ended may have answered before.
            if not ready.has_answer(row):
                raise self._ended(row)
            self._read(row)
        except (EOFError, OSError) as error:
            if not lost_worker(error):
                raise
            self._bury(row, error)
            ready.forget(row)
        else:
            if self._take_read(row):
                ready.forget(row)

    def _read(self, row: int) -> None:
        """Read what has come of the row's answer."""
        pipe = self._lines[row].pipe
        if not hasattr(select, "poll"):
            self.owed[row] = Answer(pipe.recv_bytes())
            return
        answer = self.owed[row]
        if answer is None:
            answer = self.owed[row] = Answer()
        answer.read(pipe.fileno())

    def _take_read(self, row: int) -> bool:
        """Take the row's answer if the whole of it was read; whether it was."""
        answer = self.owed.get(row)
        data = None if answer is None else answer.whole()
        if data is None:
            return False
        # First, as no other answer will come: also where this one cannot be unpickled.
        del self.owed[row]
        self.answers[row] = pickle.loads(data)
        return True

    def _ended(self, row: int) -> EOFError:
        return EOFError(f"process {self._lines[row].process.pid} has ended")

    def _bury(self, row: int, error: Exception) -> None:
        self.dead[row] = error
        del self.owed[row]
