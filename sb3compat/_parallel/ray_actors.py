"""Workers that are actors of a Ray cluster: `backend="ray"`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import ray

from sb3compat._convert.types import Array
from sb3compat._parallel.memory import Segment
from sb3compat._parallel.messages import Described, dumps_command, dumps_make
from sb3compat._parallel.parts import EnvFn
from sb3compat._parallel.ray_cluster import connect, not_started
from sb3compat._parallel.ray_exchange import ActorExchange, not_ready
from sb3compat._parallel.ray_serve import RowsActor
from sb3compat._parallel.workers import Workers
from sb3compat.errors import WorkerError

# How much of what Ray says of a dead actor is shown.
_MOST_CHARACTERS = 600


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
    nouns = "Ray actors"

    def __init__(
        self,
        shares: Sequence[Sequence[EnvFn]],
        options: Mapping[str, Any],
        timeout: float | None,
        schedule_timeout: float | None,
        *,
        restarts: bool = False,
    ) -> None:
        self._options = dict(options)
        self._schedule_timeout = schedule_timeout
        self._actors: dict[int, Any] = {}
        self._nodes: dict[int, str] = {}
        self._sharing: set[int] = set()  # the workers that share memory
        segments: list[Segment] = []
        self._answered = ActorExchange(self._actors, restarts=restarts)
        end = partial(_end, self._actors, segments)
        super().__init__(shares, timeout, self._answered, self._actors, end, segments)

    def start(self) -> dict[int, Described]:
        """Start the actors, and have them make their parts."""
        connect()
        return super().start()

    def collect(self) -> dict[int, Any]:
        """The answers that are owed, by worker; arrays that come with them are written."""
        answers = super().collect()
        for worker in answers:
            self._write(self._rows[worker], *self._answered.arrays.pop(worker))
        return answers

    def _write(self, rows: slice, observations: list[Array] | None = None, *others: Any) -> None:
        out = self.buffers
        if observations is not None:
            for array, values in zip(out.observations, observations, strict=True):
                array[rows] = values
        if others:
            out.rewards[rows], out.ended[rows], out.truncated[rows] = others

    def _launch(self, workers: Sequence[int]) -> None:
        if not ray.is_initialized():
            raise WorkerError("Ray has been shut down; build a new environment.")
        cls = ray.remote(RowsActor).options(**self._options)
        try:
            for worker in workers:
                self._actors[worker] = cls.remote()
            self._await_places(workers)
        except BaseException:
            # They would not answer, nor close, before they have a place.
            for worker in workers:
                self._kill(worker)
            raise

    def _await_places(self, workers: Sequence[int]) -> None:
        """Wait until the actors have told their nodes."""
        refs = {self._actors[worker].node.remote(): worker for worker in workers}
        waiting = not_ready(refs, self._schedule_timeout)
        if waiting:
            why = f"within schedule_timeout={self._schedule_timeout} seconds"
            raise not_started(len(waiting), len(refs), self._options, why)
        for ref, worker in refs.items():
            try:
                self._nodes[worker] = ray.get(ref)
            except ray.exceptions.ActorUnschedulableError as error:  # noqa: PERF203
                raise not_started(1, len(refs), self._options, "at all") from error
            except ray.exceptions.RayError as error:
                raise WorkerError(
                    f"Expected an actor of Ray to start with actor_options={self._options}, got: "
                    f"{error}\nEach node needs sb3compat and what the functions need, in the same "
                    "versions as here; runtime_env can install it."
                ) from error

    def _make_message(self, worker: int) -> bytes:
        return dumps_make(self._shares[worker], self._firsts[worker])

    def _send_arrays(self, workers: Sequence[int]) -> None:
        (segment,), rows = self._segments, self._rows
        home = ray.get_runtime_context().get_node_id()
        what = "attach", self._shapes, rows[-1].stop
        self._send({
            worker: dumps_command(
                *what, rows[worker], segment.place if self._nodes[worker] == home else None
            )
            for worker in workers
        })  # fmt: skip

    def _hand_over(self, workers: Sequence[int]) -> dict[int, Any]:
        self._sharing.difference_update(workers)
        answers = super()._hand_over(workers)
        self._sharing.update(worker for worker, shares in answers.items() if shares)
        return answers

    def _step_message(self, worker: int, actions: list[Array]) -> list[Array] | None:
        rows = self._rows[worker]
        return None if worker in self._sharing else [array[rows] for array in actions]

    def _how_it_died(self, worker: int, error: Exception) -> str:
        self._kill(worker)  # it may be alive, and only out of reach
        return " ".join(str(error).split())[:_MOST_CHARACTERS]

    def _kill(self, worker: int) -> None:
        _end_actors(self._actors, [worker])


def _end(actors: dict[int, Any], segments: list[Segment]) -> None:
    _end_actors(actors, list(actors))
    for segment in segments:
        segment.close()


def _end_actors(actors: dict[int, Any], workers: Sequence[int]) -> None:
    for worker in workers:
        if worker in actors and ray.is_initialized():
            with suppress(Exception):  # it may be of an earlier session of Ray
                ray.kill(actors[worker])
        actors.pop(worker, None)
