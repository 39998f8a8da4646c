"""Workers that are actors of a Ray cluster: `backend="ray"`."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import ray

from sb3compat._convert.types import Array
from sb3compat._parallel.exchanges import WorkerExchange
from sb3compat._parallel.memory import Place
from sb3compat._parallel.messages import Described, Failure, dumps_command
from sb3compat._parallel.parts import EnvFn
from sb3compat._parallel.ray_cluster import connect, not_started, session
from sb3compat._parallel.serve import Ran, RowsActor, node_id
from sb3compat._parallel.workers import Workers
from sb3compat.errors import WorkerError

# How much of what Ray says of a dead actor is shown.
_MOST_CHARACTERS = 600
# How long Ray may wait at once: it holds back what a signal handler raises until it returns.
_TURN_SECONDS = 1.0


class Actor(NamedTuple):
    """An actor, and the session of Ray that it belongs to."""

    handle: Any
    session: tuple[str, str] | None

    @property
    def is_here(self) -> bool:
        """Whether it can be reached: Ray may have been shut down, and initialised again."""
        return self.session is not None and self.session == session()

    def check(self) -> None:
        """Raise where Ray would start a cluster by itself, or does not know the actor."""
        if not self.is_here:
            raise ray.exceptions.RaySystemError("Ray has been shut down")


# All actors that run. Ray would end those of this process if a fork of it forgot them.
_RUNNING: set[Actor] = set()


class ActorExchange(WorkerExchange):
    """Messages to all actors, and their answers.

    A message is the command for `RowsActor.run` as bytes, or else what `RowsActor.step` takes. An
    actor that cannot be reached counts as dead.

    Args:
        actors: The actors.
        restarts: Whether the death of an actor is no failure, as it is replaced.

    Attributes:
        owed: The references to the answers that are owed.
        arrays: What has come with the answers; nothing with a failure.
    """

    def __init__(self, actors: Mapping[int, Actor], *, restarts: bool) -> None:
        super().__init__({}, restarts=restarts)
        self._actors = actors
        self.owed: dict[int, Any] = {}
        self.arrays: dict[int, list[Array]] = {}

    def send(self, messages: Mapping[int, Any], timeout: float | None = None) -> None:
        """Call a method of each actor; Ray takes any message at once."""
        self._give_up_interrupted()
        for worker, message in messages.items():
            self._writing = worker
            self._call(worker, message)
            self._writing = None

    def _call(self, worker: int, message: Any) -> None:
        actor = self._actors[worker]
        method = actor.handle.run if isinstance(message, bytes) else actor.handle.step
        try:
            actor.check()
            with _raised_by_handlers():
                self.owed[worker] = method.remote(message)
        except ray.exceptions.RayError as error:
            self.dead[worker] = error

    def _give_up_interrupted(self) -> None:
        """Send a message after one that was interrupted: once it is answered, none is under way."""
        if self._writing is not None:
            self._call(self._writing, dumps_command("begin", None))
            self._writing = None

    def _read(self, timeout: float | None) -> list[int]:
        """Take the answers that come within a turn."""
        workers = {ref: worker for worker, ref in self.owed.items()}
        ready = [ref for ref, worker in workers.items() if not self._actors[worker].is_here]
        if not ready:
            turn = _TURN_SECONDS if timeout is None else min(timeout, _TURN_SECONDS)
            with _raised_by_handlers():
                ready = ray.wait(list(workers), num_returns=len(workers), timeout=turn)[0]
        for ref in ready:
            self._take_answer(workers[ref], ref)
        return [workers[ref] for ref in ready]

    def _take(self, row: int) -> bool:
        return row not in self.owed  # `_read` has taken it

    def _take_answer(self, worker: int, ref: Any) -> None:
        del self.owed[worker]  # first, as no second answer will come if this one cannot be loaded
        ran: Ran
        try:
            self._actors[worker].check()
            with _raised_by_handlers():
                ran = ray.get(ref)
        except ray.exceptions.RayError as error:
            self.dead[worker] = error
        else:
            self._load(worker, ran[0])
            failed = isinstance(self.answers.get(worker), Failure)
            self.arrays[worker] = [] if failed else ran[1] or []


@contextmanager
def _raised_by_handlers() -> Iterator[None]:
    """Raise what a signal handler has raised within Ray, of which Ray makes errors of its own."""
    try:
        yield
    except SystemError as error:
        raise (error.__cause__ or error) from None
    except ray.exceptions.RaySystemError as error:
        cause = error.client_exc
        if type(cause).__name__ == "DeserializationError":  # Ray's own, in its place
            cause = cause.__context__
        raise (cause if isinstance(cause, Exception) else error) from None


class Actors(Workers):
    """Ray actors. Those on the node of the parent share memory with it.

    The arrays of others go through Ray's messages, or its object stores if they are large. On two
    cores, steps of 84x84x4 images are three times as fast in shared memory, those of a few numbers
    one and a half times.

    Args:
        shares: The functions of each worker.
        options: The options of each actor, as `options_for` gives them.
        timeout: How many seconds answers may take; None for ever.
        schedule_timeout: How many seconds actors may wait for a place; None for ever.
        restarts: Whether actors that are lost will be replaced.
    """

    noun = "Ray actor"
    # When actors were ended last, by `time.monotonic`.
    ended_at = -math.inf

    def __init__(
        self,
        shares: Sequence[Sequence[EnvFn]],
        options: Mapping[str, Any],
        timeout: float | None,
        schedule_timeout: float | None,
        *,
        restarts: bool,
    ) -> None:
        connect()
        self._options = dict(options)
        self._schedule_timeout = schedule_timeout
        self._actors: dict[int, Actor] = {}
        self._sharing: set[int] = set()  # the workers that share memory
        self._answered = ActorExchange(self._actors, restarts=restarts)
        super().__init__(shares, timeout, self._answered, self._actors, _end_actors)

    def collect(self) -> dict[int, Any]:
        """The answers that are owed, by worker; arrays that come with them are written."""
        answers = super().collect()
        results = self.buffers.results
        for worker in answers:
            arrays = self._answered.arrays.pop(worker)
            for array, values in zip(results, arrays, strict=False):
                array[self._rows[worker]] = values
        return answers

    def _launch(self, workers: Sequence[int]) -> None:
        if not ray.is_initialized():
            raise WorkerError(
                "Expected Ray to be running, but it was shut down. Make a new environment."
            )
        cls = ray.remote(RowsActor).options(**self._options)
        try:
            for worker in workers:
                self._actors[worker] = actor = Actor(cls.remote(), session())
                _RUNNING.add(actor)
            self._await_places(workers)
        except BaseException:
            # They would not answer, nor close, before they have a place.
            for worker in workers:
                self._answered.forget(worker)
                self._kill(worker)
            raise

    def _await_places(self, workers: Sequence[int]) -> None:
        """Wait until the actors answer."""
        exchange, count = self._answered, len(workers)
        exchange.send(dict.fromkeys(workers, dumps_command("begin", None)))
        watch = self._starting.watch(workers, exchange.owed, making=False)
        exchange.receive(self._schedule_timeout, watch)
        for error in exchange.dead.values():
            if isinstance(error, ray.exceptions.ActorUnschedulableError):
                raise not_started(1, count, self._options, "at all") from error
            raise WorkerError(
                f"Expected a Ray actor to start with actor_options={self._options}, got: "
                f"{error}\nInstall sb3compat and what the functions need on each node, in the same "
                "versions as here, or let runtime_env install it."
            ) from error
        if exchange.owed:
            why = f"within schedule_timeout={self._schedule_timeout} seconds"
            raise not_started(len(exchange.owed), count, self._options, why)
        exchange.taken()

    def _way_to_memory(self) -> tuple[str, Place | None]:
        return node_id(), self._segment.place

    def _send_memory(self, workers: Iterable[int]) -> None: ...

    def _hand_over(self, made: Mapping[int, Described]) -> dict[int, bool]:
        self._sharing.difference_update(made)
        answers = super()._hand_over(made)
        self._sharing.update(worker for worker, shares in answers.items() if shares)
        return answers

    def _send_steps(self, workers: Sequence[int], actions: list[Array]) -> None:
        messages: dict[int, Any] = dict.fromkeys(workers)
        for worker in messages.keys() - self._sharing:
            messages[worker] = [array[self._rows[worker]] for array in actions]
        self._exchange.send(messages)

    def _how_it_died(self, worker: int, error: Exception) -> str:
        self._kill(worker)  # it may be alive, and only out of reach
        return " ".join(str(error).split())[:_MOST_CHARACTERS]


def _end_actors(actors: dict[int, Actor], workers: Iterable[int]) -> None:
    for worker in workers:
        if worker in actors:
            actor = actors[worker]
            if actor.is_here:
                Actors.ended_at = time.monotonic()
                with suppress(ray.exceptions.RayError):  # it has ended by itself
                    ray.kill(actor.handle)
            _RUNNING.discard(actor)
        actors.pop(worker, None)
