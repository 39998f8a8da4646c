"""Workers that are processes of this machine: `backend="processes"`."""

from __future__ import annotations

import errno
import itertools
import multiprocessing
import os
import socket
import sys
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.util import Finalize
from typing import Any

from sb3compat._convert.types import Array, Value
from sb3compat._ipc.pipes import Deadline, Exchange, end_processes, lost_worker
from sb3compat._ipc.ready import Line
from sb3compat._parallel.launch import Life, launch, signals_held, start_helpers
from sb3compat._parallel.make_parts import EnvFn
from sb3compat._parallel.memory import Buffers, Segment, Shapes, buffers_in, size_of
from sb3compat._parallel.messages import Described, Failure, dumps_command, dumps_make
from sb3compat._parallel.program import Program
from sb3compat._parallel.serve import STEP
from sb3compat._parallel.workers import Owner, check_made
from sb3compat.errors import WorkerError, WorkerTimeoutError

# How long workers may take to end that owe an answer, or that nobody waits for.
_CLOSE_SECONDS = 5.0
# There are no descriptors left, in this process or in the system.
_NONE_LEFT = (errno.EMFILE, errno.ENFILE)
# How long interpreters may take to start, beside the timeout of the commands.
_START_SECONDS = 60.0


class WorkerExchange(Exchange):
    """Messages to all workers; one for the whole life of them, so that nothing owed is forgotten.

    Args:
        lines: The workers.
        restarts: Whether the death of a worker is no failure, as it is replaced.
    """

    def __init__(self, lines: Mapping[int, Line], *, restarts: bool) -> None:
        super().__init__(lines)
        self._restarts = restarts

    @property
    def failed(self) -> bool:
        """Whether something is to be raised, whatever the others answer."""
        raised = any(isinstance(answer, Failure) for answer in self.answers.values())
        return raised or (bool(self.dead) and not self._restarts)


class Processes:
    """Worker processes; arrays are in shared memory.

    Args:
        shares: The functions of each worker.
        start_method: How processes are started, see `launch`.
        timeout: How many seconds answers may take; None for ever.
        restarts: Whether workers that are lost will be replaced.
    """

    noun = "worker process"
    buffers: Buffers

    def __init__(
        self,
        shares: Sequence[Sequence[EnvFn]],
        start_method: str | None,
        timeout: float | None,
        *,
        restarts: bool = False,
    ) -> None:
        self.lost: dict[int, str] = {}
        self._shares = shares
        self._firsts = list(itertools.accumulate(map(len, shares), initial=0))
        self._start_method = start_method
        self._timeout = timeout
        self._lines: dict[int, Line] = {}
        self._exchange = WorkerExchange(self._lines, restarts=restarts)
        # When the answers are due to the command that was sent last.
        self._deadline = Deadline(timeout)
        self._attach: dict[int, bytes] = {}
        self._segments: list[Segment] = []
        self._closing = False
        self._life = Life(*multiprocessing.Pipe(duplex=False))
        self._end = _End(self._lines, self._segments, self._life)
        self._finalizer = weakref.finalize(self, self._end)
        self._finalizer.atexit = False
        self._rows: Sequence[slice] = ()

    def start(self) -> dict[int, Described]:
        """Start the workers, and have them make their parts."""
        return self._make(range(len(self._shares)))

    def attach(self, shapes: Shapes, rows: Sequence[slice]) -> None:
        """Make the shared memory, and hand it to each worker."""
        self._rows = rows
        num_envs = rows[-1].stop
        segment = Segment(size_of(shapes, num_envs))
        self._segments.append(segment)
        self.buffers = buffers_in(segment.memory, shapes, num_envs)
        for worker, own in enumerate(rows):
            self._attach[worker] = dumps_command(
                "attach", segment.size, segment.name, shapes, num_envs, own.start
            )
        self._hand_over(range(len(rows)))

    def restart(self, worker: int) -> None:
        """Replace a lost worker by a new one with the same functions.

        It is lost until all is done: after an error or an interrupt, this can be tried again.
        """
        self._settle()
        self._discard(worker)
        try:
            self._make([worker])
            self._hand_over([worker])
        except BaseException:
            self._discard(worker)
            raise
        del self.lost[worker]

    def send(self, commands: Mapping[int, Sequence[Any]]) -> None:
        """Send workers a command each."""
        # Pickled before anything is sent: what cannot be pickled leaves all workers untouched.
        messages = {worker: dumps_command(*command) for worker, command in commands.items()}
        self._settle()
        self._send({worker: data for worker, data in messages.items() if worker not in self.lost})

    def send_step(self, actions: list[Array]) -> None:
        """Have all workers step their rows with these actions."""
        self._settle()
        for array, values in zip(self.buffers.actions, actions, strict=True):
            array[...] = values
        self._send(dict.fromkeys(self._lines.keys() - self.lost.keys(), STEP))
        # The program may take its time before it asks for the results.
        self._deadline = Deadline(None)

    def collect(self) -> dict[int, Value]:
        """The answers that are owed, by worker."""
        exchange = self._exchange
        deadline = self._deadline if self._deadline.timeout else Deadline(self._timeout)
        self._deadline = Deadline(None)  # what is left over is waited for as long once more
        exchange.receive(deadline.left())
        failed = exchange.failed
        self._note_dead()
        if exchange.owed and not failed:
            raise self._late()
        answers, exchange.answers = exchange.answers, {}
        return answers

    def observations(self, *, copy: bool) -> list[Array]:
        """The observations of all rows."""
        arrays = self.buffers.observations
        return [array.copy() for array in arrays] if copy else arrays

    def close(self, *, patient: bool = True) -> None:
        """Have the workers close their parts, and end them."""
        if not self._end.owns:
            return
        again, self._closing = self._closing, True
        failures: list[Failure] = []
        try:
            if not again:
                failures = self._close_parts(_CLOSE_SECONDS if patient else 0.0)
        finally:
            self._end()
            self._finalizer.detach()
        for failure in failures:
            failure.reraise()

    def _close_parts(self, patience: float) -> list[Failure]:
        """Have all workers close their parts, but for those that are busy for longer than this."""
        exchange = self._exchange
        exchange.take_back()
        exchange.receive(patience)
        self._note_dead()
        exchange.answers = {}
        busy = {*exchange.owed, *self.lost}
        end_processes(self._lines[worker].process for worker in busy & self._lines.keys())
        for worker in busy:
            exchange.forget(worker)
        self._send(dict.fromkeys(self._lines.keys() - busy, dumps_command("close")))
        exchange.receive(self._timeout)
        return [answer for answer in exchange.answers.values() if isinstance(answer, Failure)]

    def _launch(self, worker: int) -> None:
        method = self._start_method
        start_helpers(method)
        try:
            with signals_held():
                pipe, process, _ = launch(method, self._shares[worker], self._life)
                self._lines[worker] = Line(pipe, process)
        except OSError as error:
            if not lost_worker(error):  # what a handler has raised
                raise
            raise self._refused(worker, error) from error

    def _make(self, workers: Sequence[int]) -> dict[int, Described]:
        """Start workers, and have them make their parts."""
        forks = self._start_method == "fork"
        # Before any process is started.
        make = {}
        for worker in workers:
            share, first = self._shares[worker], self._firsts[worker]
            make[worker] = dumps_command("make", None, first) if forks else dumps_make(share, first)
        program = dumps_command("begin", None if forks else Program.this())
        for worker in workers:
            self._launch(worker)
        start = None if self._timeout is None else max(self._timeout, _START_SECONDS)
        self._talk(dict.fromkeys(workers, program), start)
        described = self._talk(make, self._timeout)
        return {worker: described[worker] for worker in workers}

    def _talk(self, messages: dict[int, bytes], timeout: float | None) -> dict[int, Any]:
        """What new workers answer; raises what the first of them has met."""
        self._send(messages, timeout)
        try:
            answers = self.collect()
        except WorkerTimeoutError:
            late = [self._functions(worker) for worker in sorted(self._exchange.owed)]
            raise WorkerTimeoutError(
                f"The worker processes of {', '.join(late)} have not made their parts within "
                f"timeout={timeout} seconds. Give them more time."
            ) from None
        check_made(self, messages, answers, self._firsts)
        return answers

    def _hand_over(self, workers: Sequence[int]) -> None:
        """Hand the shared memory to some workers."""
        messages = {worker: self._attach[worker] for worker in workers}
        self._send(messages)
        for worker in messages.keys() & self._exchange.owed.keys():
            self._send_memory(worker)
        check_made(self, workers, self.collect(), self._firsts)

    def _send_memory(self, worker: int) -> None:
        try:
            self._segments[0].send(self._lines[worker].pipe)  # type: ignore[arg-type]
        except OSError as error:
            if error.errno in _NONE_LEFT:
                raise self._refused(worker, error) from error
            if not lost_worker(error):
                raise

    def _send(self, messages: Mapping[int, bytes], timeout: float | None = None) -> None:
        self._end.check_owner()
        self._deadline = Deadline(timeout or self._timeout)
        self._exchange.send(messages, self._deadline.left())
        self._note_dead()

    def _settle(self) -> None:
        """Take the answers that an interrupt or an error has left behind."""
        exchange = self._exchange
        exchange.take_back()
        if exchange.owed:
            exchange.receive(self._timeout)
            self._note_dead()
            if exchange.owed:
                raise self._late()
        exchange.answers = {}

    def _discard(self, worker: int) -> None:
        """End a lost worker, whatever it is doing, and forget what it owes."""
        self.lost.setdefault(worker, "it could not be replaced")
        self._exchange.forget(worker)
        if worker in self._lines:
            self._lines[worker].process.kill()
            _end_lines(self._lines, [worker])

    def _note_dead(self) -> None:
        dead = self._exchange.dead
        for worker in list(dead):
            process: Any = self._lines[worker].process
            process.join(_CLOSE_SECONDS)
            self.lost[worker] = f"exit code {process.exitcode}"
            del dead[worker]

    def _refused(self, worker: int, error: OSError) -> WorkerError:
        return WorkerError(
            f"Expected to start a worker process for {self._functions(worker)}, but the system "
            f"refuses: {error}. Use fewer workers, or raise its limits (`ulimit -a`)."
        )

    def _late(self) -> WorkerTimeoutError:
        late = [self._rows[worker] for worker in sorted(self._exchange.owed) if self._rows]
        named = ", ".join(f"{rows.start} to {rows.stop - 1}" for rows in late)
        return WorkerTimeoutError(
            f"The worker processes of the rows {named} have not answered within "
            f"timeout={self._timeout} seconds. Close this environment, which ends them; or call "
            "reset(), which waits as long for them once more."
        )

    def _functions(self, worker: int) -> str:
        return f"env_fns[{self._firsts[worker]}] to env_fns[{self._firsts[worker + 1] - 1}]"


class _End(Owner):
    """Ends worker processes: at `close`, when the environment is forgotten, at the end of Python.

    `multiprocessing` runs its finalizers before it waits for its processes; `atexit` may be later,
    and does not run at all in a process of `multiprocessing`. After an interrupt, another call
    goes on.
    """

    def __init__(self, lines: dict[int, Line], segments: list[Segment], life: Life) -> None:
        super().__init__()
        self._lines, self._segments, self._life = lines, segments, life
        self._at_end = Finalize(None, self._end, exitpriority=10)
        _ENDS.add(self)

    def __call__(self) -> None:
        self._end()
        self._at_end.cancel()

    def _end(self) -> None:
        if not self.owns:
            return
        for segment in self._segments:
            segment.close()
        _end_lines(self._lines, list(self._lines))
        with suppress(OSError):  # as in `_hang_up`
            self._life.close()

    def let_go(self) -> None:
        """Close a fork's copies of the parent's ends, so that only the parent's own count."""
        for end in (*(line.pipe for line in self._lines.values()), self._life.ours):
            with suppress(OSError):
                end.close()


_ENDS: weakref.WeakSet[_End] = weakref.WeakSet()


def _let_go_in_fork() -> None:
    for end in list(_ENDS):
        end.let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_fork)


def _end_lines(lines: dict[int, Line], workers: Sequence[int]) -> None:
    """Close the pipes, which ends the workers; and end those that have not ended in time.

    After an interrupt, it can be called again.
    """
    for worker in workers:
        _hang_up(lines[worker].pipe)
    until = time.monotonic() + _CLOSE_SECONDS
    for worker in workers:
        lines[worker].process.join(max(0.0, until - time.monotonic()))
    end_processes(lines[worker].process for worker in workers if lines[worker].process.is_alive())
    for worker in workers:
        # A process of `multiprocessing` frees its descriptors as well. It does not if somebody else
        # has waited for its end, as Python cannot tell that it has ended.
        with suppress(ValueError):
            lines.pop(worker).process.close()  # type: ignore[attr-defined]


def _hang_up(pipe: Any) -> None:
    """End the connection itself: another process may have been forked with this end of it."""
    if sys.platform != "win32":
        # It is closed, or there is no descriptor left.
        with suppress(OSError), socket.socket(fileno=os.dup(pipe.fileno())) as end:
            end.shutdown(socket.SHUT_RDWR)
    with suppress(OSError):  # an interrupt has come just after it was closed
        pipe.close()
