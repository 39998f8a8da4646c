"""Pipes to the workers of another library's environment, which record outstanding answers.

`AsyncVectorEnv` and `SubprocVecEnv` send to all workers and then wait for each. An exception in
between, such as a signal handler's, leaves answers outstanding, which the next call would receive;
and if a worker has died, they wait for its answer forever if another worker holds its pipe open.
These pipes replace the environment's own: outstanding answers are recorded, and the death of a
worker raises an error. Our own calls use the same exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from multiprocessing import TimeoutError as ProcessTimeoutError
from multiprocessing.connection import Connection
from typing import Any

from sb3compat._convert.types import ProcessLike
from sb3compat._ipc.pipes import Exchange, died, end_processes, pickled
from sb3compat._ipc.ready import Line
from sb3compat._ipc.turn import Turn
from sb3compat.errors import WorkerError


class AnswerLostError(WorkerError, ProcessTimeoutError):
    """An answer will not come.

    `AsyncVectorEnv.close()` first finishes the call that is under way. Where that raises a timeout,
    it terminates the workers; any other error would leave them alive, at each further `close()`.
    """


class Watch:
    """The workers of an environment.

    Args:
        pipes: The parent's ends of their pipes, by row.
        processes: Their processes, by row.

    Attributes:
        exchange: Their outstanding answers, and which of them have died.
        turn: Lets one call of ours speak to them at a time.
        pipes: The pipes to put in the place of those given.
    """

    def __init__(self, pipes: Sequence[Any], processes: Sequence[ProcessLike]) -> None:
        lines = map(Line, pipes, processes)
        self.exchange = Exchange(dict(enumerate(lines)))
        self.turn = Turn()
        self.pipes = [WatchedPipe(self, row, pipe) for row, pipe in enumerate(pipes)]
        self._processes = processes
        # The rows that were sent "close", each with whether its answer to that can come.
        self._closing: dict[int, bool] = {}
        # Whether a call of ours is under way, or was interrupted.
        self._calling = False

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run a function that sends and receives; answers that it leaves are never received."""
        self._calling = True
        result = function(*args, **kwargs)
        self._calling = False
        return result

    def waits(self, *, noted: bool) -> bool:
        """Whether a call of the user is in progress: the answers of all workers are outstanding.

        Args:
            noted: Whether the environment has noted one.
        """
        exchange = self.exchange
        every = len(exchange.owed) == len(self.pipes)
        return noted and every and not (self._calling or exchange.dead)

    def is_lost(self, *, noted: bool) -> bool:
        """Whether a worker has died, or an answer of an interrupted call is outstanding.

        Args:
            noted: As for `waits`.
        """
        exchange = self.exchange
        return bool(exchange.dead or exchange.owed or noted) and not self.waits(noted=noted)

    def send(self, row: int, message: Any) -> None:
        """Record that an answer is outstanding, and send the message."""
        if message == ("close", None):
            self._send_close(row, message)
            return
        data = pickled(message)
        if row in self.exchange.owed:
            raise WorkerError(
                f"Expected no outstanding answer from the worker of row {row}, but its answer to "
                "an earlier call was not received. If step_async() was called, call step_wait(). "
                "If indices name a row twice, name it once. If an exception or interrupt came "
                "in between, the answer may never come. Close this environment and build a new one."
            )
        self.exchange.send({row: data})
        self.check_alive()

    def receive(self, row: int) -> Any:
        """Take an answer.

        Raises:
            AnswerLostError: If a worker has died; what the others wait for may then never come.
        """
        if row in self._closing:
            return self._receive_close(row)
        if row not in self.exchange.owed:
            raise AnswerLostError(
                f"Expected an outstanding answer from the worker of row {row}, but its answer was "
                "received already, or lost by an interrupt. Close this environment and build a "
                "new one."
            )
        self.exchange.receive_one(row)
        self.check_alive()
        return self.exchange.taken()[row]

    def check_alive(self) -> None:
        """Refuse to go on once a worker has died."""
        dead = self.exchange.dead
        if dead:
            raise AnswerLostError(*died(min(dead), dead[min(dead)]).args) from dead[min(dead)]

    def _send_close(self, row: int, message: Any) -> None:
        """Let a worker end, whatever has come before: closing raises no error of a worker."""
        exchange = self.exchange
        self._closing[row] = row not in exchange.owed
        # A worker that has received only a part of a message may never read the rest.
        end_processes([self._processes[cut] for cut in exchange.unsent])
        exchange.unsent.clear()
        if row in exchange.dead:  # it still waits if an interrupt came while it was sent a message
            end_processes([self._processes[row]])
        else:
            exchange.send({row: pickled(message)})

    def _receive_close(self, row: int) -> None:
        """Wait until a worker is about to end; where it may never answer, terminate them all."""
        if self._closing[row]:
            self.exchange.receive_one(row)
        if self.exchange.dead or not self._closing[row]:
            end_processes(self._processes)


class WatchedPipe:
    """A pipe of `Watch`, which forwards all other attributes to the pipe itself."""

    def __init__(self, watch: Watch, row: int, pipe: Connection[Any, Any]) -> None:
        self.watch, self.row, self.pipe = watch, row, pipe

    def send(self, message: Any) -> None:
        """Send a message."""
        self.watch.send(self.row, message)

    def recv(self) -> Any:
        """Take an answer."""
        return self.watch.receive(self.row)

    def __getattr__(self, name: str) -> Any:
        if name == "pipe":
            raise AttributeError(name)
        return getattr(self.pipe, name)


def watch_of(pipes: Sequence[Any], processes: Sequence[ProcessLike], *, noted: bool) -> Watch:
    """The watch over these pipes, or a new one, whose pipes are to be put in their place.

    Args:
        pipes: The environment's pipes.
        processes: Its processes.
        noted: Whether the environment has noted that a call is under way.
    """
    if isinstance(pipes[0], WatchedPipe):
        return pipes[0].watch
    watch = Watch(pipes, processes)
    if noted:
        for row in range(len(watch.pipes)):
            watch.exchange.expect(row)
    return watch


def unwatched(pipe: Any) -> Any:
    """The pipe itself."""
    return pipe.pipe if isinstance(pipe, WatchedPipe) else pipe
