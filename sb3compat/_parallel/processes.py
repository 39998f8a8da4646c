"""Workers that are processes of this machine: `backend="processes"`."""

from __future__ import annotations

import itertools
import os
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.util import Finalize
from typing import Any

from sb3compat._convert.types import Array, Value
from sb3compat._parallel.launch import launch
from sb3compat._parallel.memory import Buffers, Segment, Shapes, buffers_in, size_of
from sb3compat._parallel.messages import Described, Failure, dumps_command
from sb3compat._parallel.parts import EnvFn
from sb3compat._parallel.serve import STEP
from sb3compat._parallel.workers import check_made
from sb3compat._upstream.pipes import Exchange, end_processes
from sb3compat._upstream.ready import Line
from sb3compat.errors import WorkerTimeoutError

# How long workers may take to end that owe an answer, or that nobody waits for.
_CLOSE_SECONDS = 5.0


class PatientExchange(Exchange):
    """No worker waits for another one here: the death of one sets the others no limit."""

    grace_seconds = float("inf")


class Processes:
    """Worker processes; arrays are in shared memory.

    Args:
        shares: The functions of each worker.
        start_method: How processes are started, see `launch`.
        timeout: How many seconds answers may take; None for ever.
    """

    noun = "worker process"
    buffers: Buffers

    def __init__(
        self, shares: Sequence[Sequence[EnvFn]], start_method: str | None, timeout: float | None
    ) -> None:
        self.lost: dict[int, str] = {}
        self._shares = shares
        self._firsts = list(itertools.accumulate(map(len, shares), initial=0))
        self._start_method = start_method
        self._timeout = timeout
        self._lines: dict[int, Line] = {}
        self._exchange = PatientExchange({})
        self._attach: dict[int, bytes] = {}
        self._segments: list[Segment] = []
        self._end = _End(self._lines, self._segments)
        self._finalizer = weakref.finalize(self, self._end)
        self._finalizer.atexit = False
        self._rows: Sequence[slice] = ()

    def start(self) -> dict[int, Described]:
        """Start the workers, and have them make their parts."""
        workers = range(len(self._shares))
        make = {worker: self._launch(worker) for worker in workers}
        described = self._made(make)
        return {worker: described[worker] for worker in workers}

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
        """Replace a lost worker by a new one with the same functions."""
        line = self._lines.pop(worker, None)
        if line is not None:
            _end_lines([line])
        del self.lost[worker]
        self._made({worker: self._launch(worker)})
        self._hand_over([worker])

    def send(self, commands: Mapping[int, Sequence[Any]]) -> None:
        """Send workers a command each."""
        # Pickled before anything is sent: what cannot be pickled leaves all workers untouched.
        messages = {worker: dumps_command(*command) for worker, command in commands.items()}
        self._send(messages)

    def send_step(self, actions: list[Array]) -> None:
        """Have all workers step their rows with these actions."""
        self._settle()
        for array, values in zip(self.buffers.actions, actions, strict=True):
            array[...] = values
        self._send(dict.fromkeys(self._lines, STEP))

    def collect(self) -> dict[int, Value]:
        """The answers that are owed, by worker."""
        exchange = self._exchange
        exchange.receive(self._timeout)
        self._note_dead(exchange)
        if exchange.owed:
            late = [self._rows[worker] for worker in sorted(exchange.owed)]
            named = ", ".join(f"{rows.start} to {rows.stop - 1}" for rows in late)
            raise WorkerTimeoutError(
                f"The worker processes of the rows {named} have not answered within "
                f"timeout={self._timeout} seconds. Close this environment, which ends them; or "
                "call reset(), which waits as long for them once more."
            )
        answers, exchange.answers = exchange.answers, {}
        return answers

    def observations(self, *, copy: bool) -> list[Array]:
        """The observations of all rows."""
        arrays = self.buffers.observations
        return [array.copy() for array in arrays] if copy else arrays

    def close(self) -> None:
        """Have the workers close their parts, and end them."""
        failures: list[Failure] = []
        try:
            self._exchange.receive(_CLOSE_SECONDS)
            self._note_dead(self._exchange)
            owing = self._exchange.owed
            end_processes(self._lines[worker].process for worker in owing)
            idle = [worker for worker in self._lines if worker not in {*owing, *self.lost}]
            exchange = PatientExchange(self._lines)
            exchange.send(dict.fromkeys(idle, dumps_command("close")))
            exchange.receive(self._timeout)
            answers = map(exchange.answers.get, idle)
            failures = [answer for answer in answers if isinstance(answer, Failure)]
        finally:
            self._finalizer()
        for failure in failures:
            failure.reraise()

    def _launch(self, worker: int) -> bytes:
        """Start a process, and return the command that has it make its parts."""
        env_fns = self._shares[worker]
        others = [line.pipe for line in self._lines.values()]
        pipe, process, has_fns = launch(self._start_method, env_fns, others)  # type: ignore[arg-type]
        self._lines[worker] = Line(pipe, process)
        return dumps_command("make", None if has_fns else env_fns, self._firsts[worker])

    def _made(self, make: dict[int, bytes]) -> dict[int, Described]:
        """Have workers make their parts, and wait for that as long as it takes."""
        exchange = PatientExchange(self._lines)
        exchange.send(make)
        exchange.receive()
        self._note_dead(exchange)
        check_made(self, make, exchange.answers, self._firsts)
        return exchange.answers

    def _hand_over(self, workers: Iterable[int]) -> None:
        """Hand the shared memory to some workers."""
        exchange = PatientExchange(self._lines)
        exchange.send({worker: self._attach[worker] for worker in workers})
        for worker in list(exchange.owed):
            with suppress(OSError):  # it has died, which `receive` notices
                self._segments[0].send(self._lines[worker].pipe)  # type: ignore[arg-type]
        exchange.receive()
        self._note_dead(exchange)

    def _send(self, messages: Mapping[int, bytes]) -> None:
        self._settle()
        exchange = self._exchange = PatientExchange(self._lines)
        alive = {worker: data for worker, data in messages.items() if worker not in self.lost}
        try:
            exchange.send(alive)
        except BaseException:
            # Whether the last one of them has got its message is not known.
            worker = next(reversed(exchange.owed), None)
            if worker is not None:
                self._lines[worker].process.kill()
            raise
        self._note_dead(exchange)

    def _settle(self) -> None:
        """Take the answers that an interrupt has left behind."""
        if self._exchange.owed:
            self.collect()

    def _note_dead(self, exchange: Exchange) -> None:
        for worker in exchange.dead:
            process: Any = self._lines[worker].process
            process.join(_CLOSE_SECONDS)
            self.lost[worker] = f"exit code {process.exitcode}"
        exchange.dead = {}


class _End:
    """Ends worker processes: at `close`, when the environment is forgotten, at the end of Python.

    `multiprocessing` runs its finalizers before it waits for its processes; `atexit` may be later,
    and does not run at all in a process of `multiprocessing`.
    """

    def __init__(self, lines: dict[int, Line], segments: list[Segment]) -> None:
        self._lines, self._segments = lines, segments
        self._owner = os.getpid()
        self._at_end = Finalize(None, self._end, exitpriority=10)

    def __call__(self) -> None:
        self._at_end.cancel()
        self._end()

    def _end(self) -> None:
        if os.getpid() != self._owner:  # a fork of the parent, whose processes these are not
            return
        lines = list(self._lines.values())
        self._lines.clear()
        for segment in self._segments:
            segment.close()
        _end_lines(lines)


def _end_lines(lines: Sequence[Line]) -> None:
    """Close the pipes, which ends the workers; and end those that have not ended in time."""
    for line in lines:
        line.pipe.close()
    until = time.monotonic() + _CLOSE_SECONDS
    for line in lines:
        line.process.join(max(0.0, until - time.monotonic()))
    end_processes(line.process for line in lines if line.process.is_alive())
    for line in lines:
        # A process of `multiprocessing` frees its descriptors as well.
        line.process.close()  # type: ignore[attr-defined]
