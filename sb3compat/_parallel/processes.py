"""Workers that are processes of this machine: `backend="processes"`."""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from sb3compat._convert.types import Array
from sb3compat._ipc.pipes import InterruptedMessageError, end_processes
from sb3compat._ipc.ready import Line, Spin, join
from sb3compat._parallel.exchanges import ParentExchange, WorkerExchange
from sb3compat._parallel.launch import launch, signals_held, start_helpers
from sb3compat._parallel.parts import EnvFn
from sb3compat._parallel.program import GUARD
from sb3compat._parallel.serve import STEP
from sb3compat._parallel.starting import HAS_NOTES
from sb3compat._parallel.worker import Worker
from sb3compat._parallel.workers import Workers
from sb3compat.errors import WorkerError

# How long workers may take to end once their pipes are closed.
_END_SECONDS = 5.0


class Processes(Workers):
    """Worker processes; arrays are in shared memory.

    Args:
        shares: The functions of each worker.
        start_method: How processes are started, see `launch`.
        timeout: How many seconds answers may take; None for ever.
        restarts: Whether workers that are lost will be replaced.
        parent_steps: Whether the last of them is this process.
        spin_seconds: How long to poll for messages before sleeping until they arrive.
    """

    noun = "worker process"

    def __init__(
        self,
        shares: Sequence[Sequence[EnvFn]],
        start_method: str | None,
        timeout: float | None,
        *,
        restarts: bool,
        parent_steps: bool,
        spin_seconds: float,
    ) -> None:
        self._start_method, self._spin_seconds = start_method, spin_seconds
        self._lines: dict[int, Line] = {}
        # The workers write into the second end of this one.
        self._notes = multiprocessing.Pipe(duplex=False) if HAS_NOTES else ()
        for end in self._notes:
            os.set_blocking(end.fileno(), False)
        self._notes_number = self._notes[0].fileno() if self._notes else None
        last = len(shares) - 1
        # The number of the worker that is this process.
        self._own = [last] if parent_steps else []
        spin = Spin(spin_seconds) if spin_seconds else None
        options: dict[str, Any] = {"restarts": restarts, "spin": spin}
        exchange = WorkerExchange(self._lines, **options)
        if parent_steps:
            worker = Worker(
                lambda size, name: self._segment.memory,
                shares[last],
                lambda function: self._starting.note(function),
            )
            exchange = ParentExchange(self._lines, number=last, worker=worker, **options)
        super().__init__(shares, timeout, exchange, self._lines, _end_lines, *self._notes)

    def _launch(self, workers: Sequence[int]) -> None:
        method = self._start_method
        for worker in (worker for worker in workers if worker not in self._own):
            start_helpers(method)
            try:
                with signals_held():
                    self._lines[worker] = launch(method, self._shares[worker], *self._notes[1:])
            except OSError as error:
                if error.errno is None:  # what a signal handler has raised
                    raise
                raise WorkerError(
                    f"Expected to start a worker process for {self._functions(worker)}, but the "
                    f"operating system refused it: {error}. Use fewer workers, or raise the "
                    "limits of the system (`ulimit -a`)."
                ) from error

    def _alive(self) -> list[int]:
        return [*super()._alive(), *self._own]

    def _has_functions(self, worker: int) -> bool:
        return self._start_method == "fork" or worker in self._own

    def _way_to_memory(self) -> str:
        return self._segment.name

    def _send_memory(self, workers: Iterable[int]) -> None:
        # After the whole of the command.
        for worker in set(workers) - self._exchange.unsent.keys():
            with suppress(ConnectionError):  # it has died, which the exchange will notice
                self._segment.send(self._lines[worker].pipe)

    def _send_steps(self, workers: Sequence[int], actions: list[Array]) -> None:
        self._exchange.send_same(workers, STEP)

    def _how_it_died(self, worker: int, error: Exception) -> str:
        if isinstance(error, InterruptedMessageError):
            return str(error)
        process: Any = self._lines[worker].process
        join(process, _END_SECONDS)
        how = f"exit code {process.exitcode}"
        if process.exitcode == 1 and self._start_method in ("spawn", "forkserver"):
            how += f"; with {self._start_method!r}, a script has to start workers below {GUARD!r}"
        return how

    def _stop(self) -> None:
        _stop_lines(list(self._lines.values()))

    def _kill(self, worker: int) -> None:
        with suppress(ValueError):  # an interrupt has come just after it was closed
            self._lines[worker].process.kill()
        super()._kill(worker)


def _end_lines(lines: dict[int, Line], workers: Iterable[int]) -> None:
    """End these workers, and free what they have used.

    After an interrupt, it can be called again.
    """
    ended = {worker: lines[worker] for worker in workers if worker in lines}
    _stop_lines(list(ended.values()))
    for worker, line in ended.items():
        with suppress(OSError):  # as in `_end_all`
            line.pipe.close()
        # A process of `multiprocessing` frees its descriptors as well, unless other code has waited
        # for its end: Python then cannot tell that it has ended.
        with suppress(ValueError):
            line.process.close()  # type: ignore[attr-defined]
        lines.pop(worker, None)


def _stop_lines(lines: Iterable[Line]) -> None:
    """Hang up, which ends the workers; and end those that have not ended in time."""
    for line in lines:
        _hang_up(line.pipe)
    until = time.monotonic() + _END_SECONDS
    with suppress(ValueError):  # another thread has freed them
        for line in lines:
            join(line.process, max(0.0, until - time.monotonic()))
        end_processes(line.process for line in lines if line.process.is_alive())


def _hang_up(pipe: Any) -> None:
    """Shut the connection down: another process may have been forked with a copy of this end."""
    with suppress(OSError):  # it is closed, or there is no descriptor left
        if sys.platform == "win32":
            pipe.close()
            return
        with socket.socket(fileno=os.dup(pipe.fileno())) as end:
            end.shutdown(socket.SHUT_RDWR)
