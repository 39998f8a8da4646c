"""`Workers`: a parent's access to its workers, in processes or Ray actors.

`worker.py` steps the rows, and `source.py` turns their results into transitions. A subclass defines
how workers are started, how they get messages, and how they are ended; `processes.py` and
`ray_actors.py` have the two subclasses.
"""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.util import Finalize
from typing import Any, ClassVar

from sb3compat._convert.actions import Actions
from sb3compat._convert.observations import Observations
from sb3compat._convert.types import Array
from sb3compat._parallel.exchanges import WorkerExchange
from sb3compat._parallel.memory import Buffers, Segment, buffers_in, size_of
from sb3compat._parallel.messages import Described, Failure, dumps_command, dumps_make, named
from sb3compat._parallel.parts import EnvFn, check_replacement
from sb3compat._parallel.program import Program, refuse_rerun
from sb3compat._parallel.starting import Starting
from sb3compat.errors import ClosedError, WorkerError, WorkerTimeoutError, warn

# How long workers with an outstanding answer may take to end.
_CLOSE_SECONDS = 5.0


class Workers(ABC):
    """Some workers, by number; each holds the rows of a few consecutive functions.

    An answer is what a command of `Worker` returns, or a `Failure`. A worker answers each command
    before it gets the next one; answers that an interrupt has left outstanding are received, and
    dropped, by the next `send`. A worker whose message was interrupted itself counts as dead.

    Args:
        shares: The functions of each worker.
        timeout: How many seconds answers may take; None for no limit.
        exchange: Carries the messages.
        running: The workers that run; a place puts them in here.
        end: Ends those of these numbers, and takes them out: called by `close`, when the
            environment is forgotten, and at the end of Python. After an interrupt, it is called
            again.
        held: Objects to close once all workers have ended.

    Attributes:
        noun: What a worker is, for messages.
        lost: The workers that have died, each with a description of how.
        restarted: How many workers were replaced.
        buffers: The arrays of all rows, as the last step or reset has left them.
    """

    noun: ClassVar[str]
    buffers: Buffers
    # How long a worker looks for a command before it sleeps until there is one.
    _spin_seconds = 0.0
    # The descriptor at which workers say which function they call, where they can.
    _notes_number: int | None = None

    def __init__(
        self,
        shares: Sequence[Sequence[EnvFn]],
        timeout: float | None,
        exchange: WorkerExchange,
        running: dict[int, Any],
        end: Callable[[dict[int, Any], Iterable[int]], None],
        *held: Any,
    ) -> None:
        self.lost: dict[int, str] = {}
        self.restarted = 0
        self._shares = shares
        self._firsts = list(itertools.accumulate(map(len, shares), initial=0))
        self._timeout = timeout
        self._exchange = exchange
        self._running = running
        self._end_some = end
        self._held = list(held)
        self._starting: Starting
        self._segment: Segment
        self._rows: Sequence[slice] = ()
        # What the first workers have made: a new one has to make the same.
        self._parts: Sequence[Described] = ()
        # A fork of this process must not use or end the workers.
        self._owner = os.getpid()
        self._closing = False
        self._end = partial(_end_all, end, running, self._held)
        # Before `multiprocessing` waits for its processes; `atexit` may be later, and does not run
        # at all in a process of `multiprocessing`. A fork of this process does not call it.
        self._finalizer = Finalize(self, self._end, exitpriority=10)

    # What a place says.

    @abstractmethod
    def _launch(self, workers: Sequence[int]) -> None:
        """Start these workers."""

    @abstractmethod
    def _way_to_memory(self) -> Any:
        """The description by which a worker finds the shared memory."""

    @abstractmethod
    def _send_memory(self, workers: Iterable[int]) -> None:
        """Send the memory itself to workers that wait for it, where it has no name."""

    @abstractmethod
    def _send_steps(self, workers: Sequence[int], actions: list[Array]) -> None:
        """Send the command to step the rows; the actions are in the arrays, too."""

    @abstractmethod
    def _how_it_died(self, worker: int, error: Exception) -> str:
        """A description of how a worker has died."""

    def _stop(self) -> None:
        """End all workers, but leave what a call that is under way still looks at."""
        self._end_some(dict(self._running), list(self._running))

    def _alive(self) -> list[int]:
        """The workers that take commands."""
        return sorted(self._running.keys() - self.lost.keys())

    def _has_functions(self, worker: int) -> bool:
        """Whether a worker is a fork, which has its functions and the state of this process."""
        return False

    # What follows from it.

    def start(self, workers: Sequence[int] | None = None) -> dict[int, Described]:
        """Start these workers, by default all, and have them make their parts.

        Raises:
            WorkerError: If a worker has died.
            WorkerTimeoutError: If it takes too long.
            Exception: What a function has raised.
        """
        refuse_rerun()
        workers = range(len(self._shares)) if workers is None else workers
        forked = {worker: self._has_functions(worker) for worker in workers}
        # Before any is started.
        make = {
            worker: dumps_make(None if fork else self._shares[worker], self._firsts[worker])
            for worker, fork in forked.items()
        }
        message = {
            fork: dumps_command("begin", None if fork else Program.this(), self._spin_seconds)
            for fork in {*forked.values()}
        }
        begin = {worker: message[fork] for worker, fork in forked.items()}
        with Starting(self.noun, self._shares, self._notes_number) as self._starting:
            self._launch(workers)
            # Interpreters take some seconds to start, to which the user's limit does not apply.
            start = None if self._timeout is None else max(self._timeout, 60.0)
            self._send(begin)
            self._made(workers, start, making=False)
            self._send(make)
            return self._made(workers, self._timeout)

    def attach(
        self,
        observations: Observations,
        actions: Actions,
        rows: Sequence[slice],
        parts: Sequence[Described],
    ) -> None:
        """Make the arrays, and tell each worker which rows of them are its own.

        Args:
            observations: The layout of a batch of all rows; that of the workers is the same.
            actions: The layout of a batch of their actions.
            rows: The rows of each worker.
            parts: What each of them has made.
        """
        self._rows, self._parts = rows, parts
        self._segment = Segment(size_of(observations, actions))
        self._held.append(self._segment)
        self.buffers = buffers_in(self._segment.memory, observations, actions)
        self._hand_over(dict(enumerate(parts)))

    def restart(self, worker: int) -> None:
        """Replace a lost worker by a new one with the same functions.

        It is lost until all is done: after an error or an interrupt, this can be tried again.

        Raises:
            WorkerError: If that one dies, too.
            WorkerTimeoutError: If it takes too long.
            UnsupportedSpaceError: If the functions now make other rows or spaces.
            Exception: What a function has raised.
        """
        self._settle()
        self._discard(worker)
        try:
            made = self.start([worker])
            check_replacement(self._parts[worker], made[worker], self._functions(worker))
            self._hand_over(made)
        except BaseException:
            self._discard(worker)
            raise
        del self.lost[worker]
        self.restarted += 1

    def send(self, commands: Mapping[int, Sequence[Any]]) -> None:
        """Send workers a command each; a worker that turns out to be dead becomes `lost`."""
        # Pickled before anything is sent: what cannot be pickled leaves all workers untouched.
        messages = {worker: dumps_command(*command) for worker, command in commands.items()}
        self._settle()
        self._send({worker: data for worker, data in messages.items() if worker not in self.lost})

    def send_step(self, actions: list[Array]) -> None:
        """Have all workers step their rows with these actions."""
        self._settle()
        for array, values in zip(self.buffers.actions, actions, strict=True):
            array[...] = values
        self._check_owner()
        self._send_steps(self._alive(), actions)
        self._note_dead()

    def collect(self) -> dict[int, Any]:
        """The answers that are owed, by worker; without those of workers that are `lost`.

        Raises:
            WorkerTimeoutError: If they do not come in time.
            ClosedError: If `close` has come before them.
        """
        late = self._receive(self._timeout)
        if self._closing:
            self._end()
            raise ClosedError(
                "Expected the answers of the workers, but close() was called before they came: "
                "from an environment, a signal handler or another thread. Make a new environment."
            )
        if late:
            raise self._late(late)
        return self._exchange.taken()

    def close(self, *, patient: bool = True, under_way: bool = False) -> None:
        """Have the workers close their parts, and end them. In a fork, it has no effect.

        Args:
            patient: Whether workers that are busy get some time for it.
            under_way: Whether another call awaits their answers: one of another thread, or one
                that a signal handler has interrupted. The workers are ended, and that call raises
                `ClosedError`.

        Raises:
            Exception: What closing a part has raised.
        """
        if os.getpid() != self._owner:
            return
        again, self._closing = self._closing, True
        if under_way:
            self._stop()
            return
        failures: list[Failure] = []
        try:
            if not again:
                failures = self._close_parts(_CLOSE_SECONDS if patient else 0.0)
        finally:
            self._end()
            self._finalizer.cancel()
        for failure in failures:
            failure.reraise()

    def _close_parts(self, patience: float) -> list[Failure]:
        """Have all workers close their parts, but for those that are busy for longer than this."""
        exchange = self._exchange
        if not exchange.is_settled:
            self._send({})  # drops a command that this process has not begun: it could take long
            self._receive(patience)
        exchange.drop_answers()
        for worker in {*exchange.owed, *self.lost}:
            self._discard(worker)
        self._send(dict.fromkeys(self._alive(), dumps_command("close")))
        late = self._receive(self._timeout)
        if late:
            warn(
                f"The environments of {self._named(late)} have not closed within "
                f"timeout={self._timeout} seconds. Their workers are ended, so that what close() "
                "writes, such as a video, may be lost. Give them "
                "more time by timeout=."
            )
        return [answer for answer in exchange.answers.values() if isinstance(answer, Failure)]

    def _hand_over(self, made: Mapping[int, Described]) -> dict[int, bool]:
        """Hand the arrays to workers that have made this; whether they share memory with us."""
        num_envs, way = self._rows[-1].stop, self._way_to_memory()
        messages = {
            worker: dumps_command("attach", num_envs, self._rows[worker], way) for worker in made
        }
        self._send(messages, self._timeout)
        self._send_memory(messages.keys() & self._exchange.owed.keys())
        return self._made(list(made), self._timeout)

    def _made(
        self, workers: Sequence[int], timeout: float | None, *, making: bool = True
    ) -> dict[int, Any]:
        """The answers of new workers; raises the error of the first one that failed.

        Args:
            workers: The workers.
            timeout: How many seconds they may take; None for ever.
            making: Whether they make their parts, or only start.
        """
        watch = self._starting.watch(workers, self._exchange.owed, making=making)
        late = self._receive(timeout, watch)
        if late:
            missing = "made their parts" if making else "started"
            raise WorkerTimeoutError(
                f"The workers of {', '.join(map(self._functions, late))} have not {missing} within "
                f"timeout={timeout} seconds.\n{self._starting.late(late)}\nGive them more time by "
                "timeout=, or fix the function that hangs."
            )
        answers = self._exchange.taken()
        for worker in sorted(workers):
            if isinstance(answers.get(worker), Failure):
                answers[worker].reraise()
        for worker in sorted(workers):
            if worker not in answers and worker in self.lost:
                raise WorkerError(
                    f"The {self.noun} of {self._functions(worker)} died while it called them "
                    f"({self.lost[worker]}); its own output may say why. If it ran out of memory, "
                    "use fewer workers or environments. Then make the environment again."
                )
        return answers

    def _send(self, messages: Mapping[int, Any], timeout: float | None = 0.0) -> None:
        """Send messages; what does not fit into the pipes in time is sent while answers come."""
        self._check_owner()
        self._exchange.send(messages, timeout)
        self._note_dead()

    def _receive(self, timeout: float | None, watch: Any = None) -> list[int]:
        """Take the answers that are owed; the workers that are late, if nothing has failed."""
        self._check_owner()
        self._exchange.receive(timeout, watch)
        failed = self._exchange.failed
        self._note_dead()
        return [] if failed else sorted(self._exchange.owed)

    def _check_owner(self) -> None:
        if os.getpid() != self._owner:
            raise WorkerError(
                f"Expected calls only from process {self._owner}, which has started the workers, "
                f"got a call from its fork {os.getpid()}. Build a new environment in the fork."
            )

    def _settle(self) -> None:
        """Receive the answers that an interrupt or an error has left outstanding."""
        exchange = self._exchange
        if not exchange.is_settled:
            self._receive(self._timeout)
            if exchange.owed:
                raise self._late(sorted(exchange.owed))
        exchange.taken()  # a signal handler may have raised something while they were read

    def _kill(self, worker: int) -> None:
        """End a worker that runs, whatever it is doing."""
        self._end_some(self._running, [worker])

    def _discard(self, worker: int) -> None:
        """End a lost worker, whatever it is doing, and drop its outstanding answer."""
        self.lost.setdefault(worker, "it could not be replaced")
        self._exchange.forget(worker)
        if worker in self._running:
            self._kill(worker)

    def _note_dead(self) -> None:
        dead = self._exchange.dead
        for worker, error in list(dead.items()):
            self.lost[worker] = self._how_it_died(worker, error)
            del dead[worker]

    def _late(self, workers: Sequence[int]) -> WorkerTimeoutError:
        return WorkerTimeoutError(
            f"The workers of {self._named(workers)} have not answered within "
            f"timeout={self._timeout} seconds. Close this environment, which ends the workers; or "
            "call reset(), which waits for up to timeout seconds again."
        )

    def _named(self, workers: Sequence[int]) -> str:
        return ", ".join(named(self._rows[worker]) for worker in workers if self._rows)

    def _functions(self, worker: int) -> str:
        first, last = self._firsts[worker], self._firsts[worker + 1] - 1
        return f"env_fns[{first}]" + (f" to env_fns[{last}]" if last > first else "")


def _end_all(
    end: Callable[[dict[int, Any], Iterable[int]], None], running: dict[int, Any], held: list[Any]
) -> None:
    end(running, list(running))
    for each in held:
        with suppress(OSError):  # an interrupt has come just after it was closed
            each.close()
