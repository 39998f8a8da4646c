"""Messages to Ray actors and their answers, as `Exchange` has them for pipes."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterable, Mapping
from typing import Any

import ray

from sb3compat._ipc.pipes import Deadline
from sb3compat._parallel.messages import Failure
from sb3compat._parallel.ray_serve import Ran, Stepped
from sb3compat._parallel.workers import WorkerExchange

# How long Ray may wait at once: it holds back what a signal handler raises until it returns.
_TURN_SECONDS = 1.0


class ActorExchange(WorkerExchange):
    """Messages to all actors.

    A message is the command for `RowsActor.run` as bytes, or else what `RowsActor.step` takes. An
    actor that cannot be reached counts as dead.

    Args:
        actors: The actors.
        restarts: Whether the death of an actor is no failure, as it is replaced.

    Attributes:
        owed: The references to the answers that are owed.
        arrays: What has come with the answers; nothing with a failure.
    """

    def __init__(self, actors: Mapping[int, Any], *, restarts: bool) -> None:
        super().__init__({}, restarts=restarts)
        self._actors = actors
        self.owed: dict[int, Any] = {}
        self.arrays: dict[int, tuple[Any, ...]] = {}

    def send(self, messages: Mapping[int, Any], timeout: float | None = None) -> None:
        """Call a method of each actor; Ray takes any message at once."""
        for worker, message in messages.items():
            actor = self._actors[worker]
            method = actor.run if isinstance(message, bytes) else actor.step
            try:
                _check_initialized()
                self.owed[worker] = method.remote(message)
            except Exception as error:  # or the actor is of an earlier session of Ray
                self.dead[worker] = error

    def receive(self, timeout: float | None = None) -> None:
        """Take the answers that come in time."""
        deadline, grace = Deadline(timeout), Deadline(None)
        while self.owed:
            if grace.timeout is None and self.failed:
                grace = Deadline(self.grace_seconds)
            limits = [left for left in (deadline.left(), grace.left()) if left is not None]
            left = min(limits, default=math.inf)
            workers = {ref: worker for worker, ref in self.owed.items()}
            ready = ready_in_turn(list(workers), left) if ray.is_initialized() else list(workers)
            for ref in ready:
                self._take_answer(workers[ref], ref)
            if left <= 0 and not ready:
                break

    def _take_answer(self, worker: int, ref: Any) -> None:
        answer: Ran | Stepped
        try:
            _check_initialized()
            answer = ray.get(ref)
        except ray.exceptions.RayError as error:
            self.dead[worker] = error
        else:
            self.answers[worker] = result = pickle.loads(answer[0])
            self.arrays[worker] = () if isinstance(result, Failure) else answer[1:]
        del self.owed[worker]


def _check_initialized() -> None:
    """Raise where Ray would start a cluster by itself."""
    if not ray.is_initialized():
        raise ray.exceptions.RaySystemError("Ray has been shut down")


def not_ready(refs: Iterable[Any], timeout: float | None) -> list[Any]:
    """Those of the references that are not ready within the time."""
    waiting = list(refs)
    deadline = Deadline(timeout)
    while waiting:
        left = deadline.left()
        ready = ready_in_turn(waiting, math.inf if left is None else left)
        waiting = [ref for ref in waiting if ref not in ready]
        if left == 0:
            break
    return waiting


def ready_in_turn(refs: list[Any], timeout: float) -> list[Any]:
    """Those of the references that are ready: all of them, or what there is after a turn."""
    try:
        ready: list[Any] = ray.wait(
            refs, num_returns=len(refs), timeout=min(timeout, _TURN_SECONDS)
        )[0]
    except SystemError as error:  # what Ray makes of what a signal handler has raised
        raise (error.__cause__ or error) from None
    return ready
