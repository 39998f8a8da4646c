"""Messages to worker processes and their answers, over `multiprocessing` pipes.

The same exchange is used for the workers of `AsyncVectorEnv`, of `SubprocVecEnv` and of
`ParallelVecEnv`. One deadline covers the whole exchange, and dead processes are noticed even if
other processes hold an end of their pipe.
"""

from __future__ import annotations

import os
import pickle
import select
import time
from collections.abc import Callable, Iterable, Mapping
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from typing import Any

from sb3compat._convert.types import ProcessLike
from sb3compat._ipc.framing import Answer, header
from sb3compat._ipc.ready import (
    HAS_POLL,
    READABLE,
    Line,
    PollReady,
    Spin,
    WaitReady,
    end_of,
    join,
    milliseconds,
    polled,
)
from sb3compat.errors import WorkerError

# `poll` takes milliseconds in a C int.
_WAIT_SECONDS = 100_000.0
# What surely fits into the buffer of a pipe, so that writing it cannot block.
_SURE_BYTES = 4096
# How long a process may take to end once it was terminated.
_TERMINATE_SECONDS = 2.0


class Deadline:
    """A time limit; None means no limit.

    Args:
        timeout: The time in seconds, from now.

    Attributes:
        timeout: The same.
    """

    def __init__(self, timeout: float | None) -> None:
        self.timeout = timeout
        self._until = None if timeout is None else time.monotonic() + timeout

    def left(self) -> float | None:
        """How many seconds are left; at least 0, and at most what can be waited for at once."""
        if self._until is None:
            return None
        return min(max(0.0, self._until - time.monotonic()), _WAIT_SECONDS)


FOREVER = Deadline(None)


def died(row: int, error: Exception) -> WorkerError:
    """The error for a worker that has died, or cannot be asked any more, as this error showed."""
    why = "has died without an answer; its own output may say why"
    if isinstance(error, InterruptedMessageError):
        why = f"can no longer be used: {error}"
    return WorkerError(
        f"The worker process of row {row} {why}. Close this environment and build a new one."
    )


def pickled(message: Any) -> bytes:
    """A message in the form in which it is written to a pipe.

    Pickle all messages before the first is sent: one that cannot be pickled then leaves all workers
    untouched.
    """
    return bytes(ForkingPickler.dumps(message))


def end_processes(processes: Iterable[ProcessLike]) -> None:
    """Terminate processes, and kill those that survive it.

    A worker survives SIGTERM if its parent had a handler for the signal: SDL's, for example, once
    pygame has shown a window.
    """
    processes = list(processes)
    for process in processes:
        process.terminate()
    until = time.monotonic() + _TERMINATE_SECONDS
    for process in processes:
        join(process, max(0.0, until - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join()


def is_writable(pipe: Connection[Any, Any]) -> bool:
    """Whether a short message can be sent without blocking; True if this cannot be known."""
    if not HAS_POLL:
        return True
    return bool(polled({pipe.fileno(): select.POLLOUT}, 0))


class InterruptedMessageError(EOFError):
    """It is not known how much of a message has arrived."""


_INTERRUPTED = "an interrupt has come while a message was written to it"


class Exchange:
    """One message to each of some workers, and their answers.

    A worker sends one answer to each message, and nothing else.

    Args:
        lines: The workers, by row.
        spin: Polls for answers before sleeping until they arrive.

    Attributes:
        owed: The rows that were sent a message and have not answered, each with the part of its
            answer that was read. A row is added before its message is sent, and removed when its
            whole answer was read, so that after an exception at any line every outstanding answer
            is known.
        unsent: The rest of messages that were not sent in time, or not before an exception, by
            row. The next call sends it. These rows are in `owed`, too; the last one perhaps only
            once that call has begun.
        answers: The answers that were received, by row.
        unread: What unpickling an answer has raised; `taken` raises it, once all have come.
        dead: The rows whose worker has died before it answered, each with the error that showed it.
    """

    ready_class: type[WaitReady | PollReady] = PollReady if HAS_POLL else WaitReady
    # How long the other workers may take once the exchange has failed: they may never answer.
    grace_seconds = 5.0

    def __init__(self, lines: Mapping[int, Line], spin: Spin | None = None) -> None:
        self._lines = lines
        self._ready = self.ready_class(spin)
        self.owed: dict[int, Answer] = {}
        self.unsent: dict[int, memoryview] = {}
        self.answers: dict[int, Any] = {}
        self.unread: Exception | None = None
        self.dead: dict[int, Exception] = {}
        # The row that is written to: after an exception, it is not known how much has arrived.
        self._writing: int | None = None

    @property
    def failed(self) -> bool:
        """Whether the exchange has failed, whatever the outstanding answers are."""
        return bool(self.dead or self.unread)

    @property
    def is_settled(self) -> bool:
        """Whether no answer is outstanding, no message partly sent, and no worker in `dead`."""
        return not (self.owed or self.unsent or self.dead) and self._writing is None

    def send(self, messages: Mapping[int, bytes], timeout: float | None = None) -> None:
        """Send each row its message, pickled already.

        Args:
            messages: The messages, by row.
            timeout: How many seconds all of them together may take; None for ever. A worker that
                hangs does not read, and a long message then fills its pipe.
        """
        self._give_up_interrupted()
        for row, body in messages.items():
            message = header(len(body)) + body if HAS_POLL else body
            self.unsent[row] = memoryview(message)
            self.expect(row)
            if len(message) <= _SURE_BYTES or not HAS_POLL:
                self._write(row)
        if self.unsent:
            self._send_rest(Deadline(timeout))

    def send_same(self, rows: Iterable[int], body: bytes) -> None:
        """Send the same short message to rows without outstanding answers, as fast as possible.

        Args:
            rows: The rows.
            body: The message, pickled already; some hundred bytes at most.
        """
        if not HAS_POLL:
            self.send(dict.fromkeys(rows, body))
            return
        self._give_up_interrupted()
        message = header(len(body)) + body
        for row in rows:
            number = self._ready.add(row, self._lines[row])
            self._writing = row
            self.owed[row] = Answer()
            try:
                os.write(number, message)
            except OSError as error:
                self._bury(row, error)
        self._writing = None

    def expect(self, row: int) -> None:
        """Record that an answer of the row is outstanding."""
        if row not in self.owed:
            self.owed[row] = Answer()
        self._ready.add(row, self._lines[row])

    def forget(self, row: int) -> None:
        """Remove a row whose answer is outstanding: its worker is about to be replaced."""
        for noted in (self.owed, self.unsent, self.answers, self.dead):
            noted.pop(row, None)
        if self._writing == row:
            self._writing = None
        self._ready.discard(row)

    def receive(
        self,
        timeout: float | None = None,
        watch: Callable[[float | None], float | None] | None = None,
    ) -> None:
        """Receive the outstanding answers.

        All answers are received, even after one that is an error, so that none is mistaken for the
        answer to the next message. Rows whose answer has not come in time stay in `owed`.

        Args:
            timeout: How many seconds all of them together may take; None for ever. Once the
                exchange has failed, the others get some seconds.
            watch: Called before each wait with the remaining seconds; returns after how many
                seconds it is to be called again.
        """
        deadline, grace = FOREVER if timeout is None else Deadline(timeout), FOREVER
        self._give_up_interrupted()
        if self.unsent:
            self._send_rest(deadline)
        for row in list(self.owed):
            self._take(row)  # if it was read before an exception
        while self.owed:
            if self.failed and grace is FOREVER:
                grace = Deadline(self.grace_seconds)
            left = deadline.left()
            if grace is not FOREVER:
                left = grace.left() if left is None else min(left, grace.left() or 0.0)
            ready = self._read(left if watch is None else watch(left))
            if not ready and left == 0:
                break
            for row in ready:
                self._take(row)

    def taken(self) -> dict[int, Any]:
        """The answers that were received, by row; they are dropped here.

        Raises:
            Exception: What unpickling one of them has raised.
        """
        answers, error = self.answers, self.unread
        self.drop_answers()
        if error is not None:
            raise error
        return answers

    def drop_answers(self) -> None:
        """Drop the answers that were received."""
        self.answers, self.unread = {}, None

    def receive_one(self, row: int) -> None:
        """Receive the answer of one row, or notice that a worker which should answer has died.

        Once a worker has died, others that wait for it may never answer.
        """
        while row in self.owed and not self._take(row) and not self.dead:
            self._read(None)

    def _write(self, row: int) -> None:
        """Write a part of the row's message; on Windows, all of it."""
        pipe, process = self._lines[row]
        rest = self.unsent[row]
        self._writing = row
        try:
            if HAS_POLL:
                rest = rest[os.write(pipe.fileno(), rest[:_SURE_BYTES]) :]
            elif wait([end_of(process)], 0):
                raise self._ended(row)
            else:
                pipe.send_bytes(rest)
                rest = rest[len(rest) :]
        except (EOFError, OSError) as error:
            self._bury(row, error)
        else:
            self.unsent[row] = rest
            if not rest:
                del self.unsent[row]
        self._writing = None

    def _send_rest(self, deadline: Deadline) -> None:
        """Send what may not fit into the pipes, as far as it is read in time.

        A long message to a worker that is dead would block for ever where another worker, forked
        from the same parent, holds the other end of its pipe.
        """
        for row in self.unsent:  # an interrupt may have come before it was noted
            self.expect(row)
        while self.unsent:
            ends = {
                row: (self._lines[row].pipe.fileno(), end_of(self._lines[row].process))
                for row in self.unsent
            }
            events: dict[int, int] = {}
            for number, end in ends.values():
                events |= {number: select.POLLOUT, end: READABLE}
            ready = polled(events, milliseconds(deadline.left()))
            if not ready and deadline.left() == 0:
                return
            for row, (number, end) in ends.items():
                if end in ready:
                    self._bury(row, self._ended(row))
                elif number in ready:
                    self._write(row)

    def _read(self, timeout: float | None) -> list[int]:
        """Wait for outstanding answers, and read from their rows; returns the rows with data."""
        ready = self._ready.wait(self.owed, timeout)
        for row, number in ready.items():
            answer = self.owed[row]
            try:
                if answer.body() is not None:  # no other row was asked for
                    self._ready.discard(row)
                elif number is None:
                    raise self._ended(row)
                elif HAS_POLL:
                    answer.read(number)
                else:
                    answer.fill(self._lines[row].pipe.recv_bytes())
            except (EOFError, OSError) as error:
                self._bury(row, error)
        return list(ready)

    def _take(self, row: int) -> bool:
        """Store the row's answer if it is complete; returns whether it was."""
        answer = self.owed.get(row)
        data = answer.body() if answer is not None else None
        if data is None:
            return False
        del self.owed[row]  # first, as no second answer will come
        self._load(row, data)
        return True

    def _load(self, row: int, data: bytes | memoryview) -> None:
        try:
            self.answers[row] = pickle.loads(data)
        except Exception as error:
            self.unread = self.unread or error

    def _give_up_interrupted(self) -> None:
        """Record the loss of a worker: an exception has interrupted the message to it."""
        if self._writing is not None:
            self._bury(self._writing, InterruptedMessageError(_INTERRUPTED))
            self._writing = None

    def _ended(self, row: int) -> EOFError:
        return EOFError(f"process {self._lines[row].process.pid} has ended")

    def _bury(self, row: int, error: EOFError | OSError) -> None:
        """Record that the row's worker has died, as this error of its pipe shows.

        An error without an error number is not from a pipe: a signal handler has raised it.
        """
        if isinstance(error, OSError) and error.errno is None:
            raise error
        self.dead[row] = error
        self.unsent.pop(row, None)
        self.owed.pop(row, None)
        self._ready.discard(row)  # last: what is owed is watched, after an interrupt as well
