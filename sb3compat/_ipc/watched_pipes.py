"""Pipes to workers that note what is owed, for loops of other libraries that send and receive.

`SubprocVecEnv` sends to all workers and then waits for each. An exception in between, such as a
signal handler's, leaves answers on their way, which the next call would get; and the answer of a
worker that has died is waited for for ever, where another worker holds its pipe. With these pipes
in the place of its own, the first is known afterwards and the second is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sb3compat._convert.types import ConnectionLike, ProcessLike, Value
from sb3compat._ipc.pipes import Exchange, died, lines_of, pickled
from sb3compat.errors import WorkerError


class Watch:
    """The workers of an environment.

    Args:
        pipes: The parent's ends of their pipes, by row.
        processes: Their processes, by row.
        strict: Whether each message has one answer. Otherwise only deaths are noticed.

    Attributes:
        exchange: What they owe, and which of them have died.
        pipes: The pipes to put in the place of those given.
        speaking: Whether a call of ours is under way, or was interrupted.
    """

    def __init__(
        self,
        pipes: Sequence[ConnectionLike],
        processes: Sequence[ProcessLike],
        *,
        strict: bool = True,
    ) -> None:
        self.exchange = Exchange(lines_of(pipes, processes, range(len(pipes))))
        self.strict = strict
        self.speaking = False
        self.pipes = [WatchedPipe(self, row, pipe) for row, pipe in enumerate(pipes)]

    @property
    def lost(self) -> bool:
        """Whether a worker has died; or, between two calls, whether one owes an answer."""
        return bool(self.exchange.dead or (self.strict and self.exchange.owed))

    def send(self, row: int, message: Value) -> None:
        """Send a message, and note before that its answer is owed."""
        data = pickled(message)
        # To close is always right: the worker ends once it has answered, and is not waited for.
        if self.strict and row in self.exchange.owed and message != ("close", None):
            raise WorkerError(
                f"Expected the worker of row {row} to owe no answer, but its answer to an earlier "
                "call was not received. If step_async() was called, call step_wait(). If an "
                "exception or interrupt came in between, that answer may never come. Close this "
                "environment and build a new one."
            )
        self.exchange.send({row: data})
        self._check_alive()

    def receive(self, row: int) -> Any:
        """Take an answer.

        Raises:
            WorkerError: If a worker has died; what the others wait for may then never come.
        """
        if row not in self.exchange.owed:
            if self.strict:
                raise WorkerError(
                    f"Expected a call that the worker of row {row} still has to answer, but there "
                    "is none: its answer was received already, or lost by an interrupt."
                )
            self.exchange.owed[row] = None
        self.exchange.receive_one(row)
        self._check_alive()
        return self.exchange.answers.pop(row)

    def _check_alive(self) -> None:
        dead = self.exchange.dead
        if dead:
            raise died(min(dead)) from dead[min(dead)]


class WatchedPipe:
    """A pipe of `Watch`; in all that it does not watch, the pipe itself."""

    def __init__(self, watch: Watch, row: int, pipe: ConnectionLike) -> None:
        self.watch, self.row, self.pipe = watch, row, pipe

    def send(self, message: Value) -> None:
        """Send a message."""
        self.watch.send(self.row, message)

    def recv(self) -> Any:
        """Take an answer."""
        return self.watch.receive(self.row)

    def __getattr__(self, name: str) -> Any:
        if name == "pipe":
            raise AttributeError(name)
        return getattr(self.pipe, name)


def can_watch(pipes: Sequence[Any], processes: Sequence[Any]) -> bool:
    """Whether these are pipes and processes as `multiprocessing` makes them, of equal number."""
    ends = all(hasattr(pipe, name) for pipe in pipes for name in ("send", "recv", "fileno"))
    ended = all(hasattr(process, "sentinel") for process in processes)
    return bool(pipes) and len(pipes) == len(processes) and ends and ended


def watch_of(
    pipes: Sequence[Any], processes: Sequence[ProcessLike], *, strict: bool = True
) -> Watch:
    """The watch over these pipes, or a new one."""
    first = pipes[0]
    return first.watch if isinstance(first, WatchedPipe) else Watch(pipes, processes, strict=strict)


def unwatched(pipe: Any) -> Any:
    """The pipe itself."""
    return pipe.pipe if isinstance(pipe, WatchedPipe) else pipe
