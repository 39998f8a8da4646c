"""Workers that are actors of a Ray cluster: `backend="ray"`."""

from __future__ import annotations

import itertools
import math
import os
import pickle
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import ray

from sb3compat._convert.types import Array, Value
from sb3compat._ipc.pipes import Deadline
from sb3compat._parallel.memory import Buffers, Segment, Shapes, buffers_in, size_of
from sb3compat._parallel.messages import (
    Described,
    Failure,
    dumps_command,
    dumps_make,
    failure_of,
)
from sb3compat._parallel.parts import EnvFn
from sb3compat._parallel.program import Program, refuse_rerun
from sb3compat._parallel.ray_cluster import (
    check_object_stores,
    check_room,
    connect,
    not_started,
)
from sb3compat._parallel.ray_serve import Place, RowsActor
from sb3compat._parallel.ray_wait import not_ready, ready_in_turn
from sb3compat._parallel.workers import Owner, check_made
from sb3compat.errors import WorkerError, WorkerTimeoutError

# How long other actors may take once something is to be raised: they may never answer.
_GRACE_SECONDS = 5.0
# Stands for the answer of an actor that was lost.
_LOST = object()
# How much of what Ray says of a dead actor is shown.
_MOST_CHARACTERS = 600


class Actors:
    """Ray actors. Those on the node of the parent share memory with it.

    The arrays of others go through Ray's messages, or its object stores if they are large.

    Args:
        shares: The functions of each worker.
        options: The options of each actor, as `options_for` gives them.
        timeout: How many seconds answers may take; None for ever.
        schedule_timeout: How many seconds actors may wait for a place; None for ever.
        restarts: Whether actors that are lost will be replaced.
    """

    noun = "Ray actor"
    buffers: Buffers

    def __init__(
        self,
        shares: Sequence[Sequence[EnvFn]],
        options: Mapping[str, Any],
        timeout: float | None,
        schedule_timeout: float | None,
        *,
        restarts: bool = False,
    ) -> None:
        self.lost: dict[int, str] = {}
        self._restarts = restarts
        self._shares = shares
        self._firsts = list(itertools.accumulate(map(len, shares), initial=0))
        self._options = dict(options)
        self._timeout = timeout
        self._schedule_timeout = schedule_timeout
        self._actors: dict[int, Any] = {}
        self._nodes: dict[int, str] = {}
        # The references to answers that are owed.
        self._owed: dict[int, Any] = {}
        self._rows: Sequence[slice] = []
        self._shapes: Shapes
        self._sharing: set[int] = set()  # the workers that share memory
        self._place: Place | None = None  # where it is
        # The observations of all rows, where some come from other nodes: whether those of the
        # sharing workers are in it as well, and whether it belongs to the caller by now.
        self._batch: list[Array] = []
        self._complete = self._given = False
        self._segments: list[Segment] = []
        self._end = _End(self._actors, self._segments)
        self._finalizer = weakref.finalize(self, self._end)

    def start(self) -> dict[int, Described]:
        """Start the actors, and have them make their parts."""
        connect()
        return self._make(range(len(self._shares)))

    def attach(self, shapes: Shapes, rows: Sequence[slice]) -> None:
        """Make the arrays, here and in each actor."""
        self._rows, self._shapes = rows, shapes
        num_envs = rows[-1].stop
        size, token = size_of(shapes, num_envs), os.urandom(16)
        segment = Segment(size + len(token))
        self._segments.append(segment)
        segment.memory[size:] = token
        self._place = None if segment.path is None else Place(segment.path, token)
        self.buffers = buffers_in(segment.memory, shapes, num_envs)
        self._batch = [np.empty_like(array) for array in self.buffers.observations]
        self._hand_over(range(len(rows)))
        far = {worker: self._nodes[worker] for worker in self._nodes.keys() - self._sharing}
        check_object_stores(far, shapes, rows)

    def restart(self, worker: int) -> None:
        """Replace a lost actor by a new one with the same functions.

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
        """Send actors a command each."""
        # Pickled before anything is sent: what cannot be pickled leaves all workers untouched.
        messages = {worker: dumps_command(*command) for worker, command in commands.items()}
        self._settle()
        self._renew()
        self._submit("run", self._alive(messages))

    def send_step(self, actions: list[Array]) -> None:
        """Have all actors step their rows with these actions."""
        self._settle()
        self._renew()
        shares: dict[int, list[Array] | None] = {}
        for worker, rows in enumerate(self._rows):
            shares[worker] = None
            if worker not in self._sharing:
                shares[worker] = [array[rows] for array in actions]
        if self._sharing:
            for array, values in zip(self.buffers.actions, actions, strict=True):
                array[...] = values
        self._submit("step", self._alive(shares))

    def collect(self) -> dict[int, Value]:
        """The answers that are owed, by worker."""
        answers = self._receive(self._timeout)
        if self._owed and not self._failed(answers):
            raise WorkerTimeoutError(
                f"The workers {sorted(self._owed)} have not answered within timeout="
                f"{self._timeout} seconds. Close this environment, which ends them; or call "
                "reset(), which waits as long for them once more."
            )
        return answers

    def _failed(self, answers: Mapping[int, Value]) -> bool:
        """Whether something is to be raised, whatever the others answer."""
        lost = bool(self.lost) and not self._restarts
        return lost or any(isinstance(answer, Failure) for answer in answers.values())

    def _alive(self, shares: Mapping[int, Any]) -> dict[int, Any]:
        return {worker: share for worker, share in shares.items() if worker not in self.lost}

    def observations(self, *, copy: bool) -> list[Array]:
        """The observations of all rows."""
        shared = self.buffers.observations
        if len(self._sharing) == len(self._rows):
            return [array.copy() for array in shared] if copy else shared
        if not self._complete:
            self._complete = True
            for worker in self._sharing:
                rows = self._rows[worker]
                for array, values in zip(self._batch, shared, strict=True):
                    array[rows] = values[rows]
        if copy and self._given:
            return [array.copy() for array in self._batch]
        # Nothing else uses it: the next answers get a new one.
        self._given |= copy
        return self._batch

    def _renew(self) -> None:
        """Make room for new observations, before they are asked for."""
        self._complete = False
        if self._given:
            self._batch = [np.empty_like(array) for array in self._batch]
            self._given = False

    def close(self, *, patient: bool = True) -> None:
        """Have the actors close their parts, and end them."""
        if not self._end.owns:  # a fork of the parent has no connection to Ray
            return
        # Those without a node have no place yet.
        idle = self._nodes.keys() - self._owed.keys() - self.lost.keys()
        self._owed.clear()
        failures: list[Failure] = []
        try:
            if idle and ray.is_initialized():
                self._submit("run", dict.fromkeys(sorted(idle), dumps_command("close")))
                answers = self._receive(self._timeout)
                failures = [each for each in answers.values() if isinstance(each, Failure)]
        finally:
            self._nodes.clear()
            self._finalizer()
        for failure in failures:
            failure.reraise()

    def _launch(self, workers: Sequence[int]) -> None:
        """Create actors, and wait until they have a place."""
        refuse_rerun()
        if not ray.is_initialized():
            raise WorkerError("Ray has been shut down; build a new environment.")
        check_room(len(workers), self._options)
        cls = ray.remote(RowsActor).options(**self._options)
        for worker in workers:
            self._actors[worker] = cls.remote()
        refs = {self._actors[worker].node.remote(): worker for worker in workers}
        waiting = not_ready(refs, self._schedule_timeout)
        why = f"within schedule_timeout={self._schedule_timeout} seconds"
        if waiting:
            raise not_started(len(waiting), len(refs), self._options, why)
        for ref, worker in refs.items():
            self._nodes[worker] = self._node_in(ref, len(refs))

    def _node_in(self, ref: Any, count: int) -> str:
        """What an actor has answered first: its node."""
        try:
            node: str = ray.get(ref)
        except ray.exceptions.ActorUnschedulableError as error:
            raise not_started(1, count, self._options, "at all") from error
        except ray.exceptions.RayError as error:
            raise WorkerError(
                f"Expected an actor of Ray to start with actor_options={self._options}, got: "
                f"{error}\nEach node needs sb3compat and what the functions need, in the same "
                "versions as here; runtime_env can install it."
            ) from error
        return node

    def _make(self, workers: Sequence[int]) -> dict[int, Described]:
        """Start actors, and have them make their parts."""
        # Before any actor is started.
        make = {
            worker: dumps_make(self._shares[worker], self._firsts[worker]) for worker in workers
        }
        program = dumps_command("begin", Program.this())
        self._launch(workers)
        self._talk(dict.fromkeys(workers, program))
        described = self._talk(make)
        return {worker: described[worker] for worker in workers}

    def _talk(self, messages: Mapping[int, bytes]) -> dict[int, Value]:
        """What new actors answer; raises what the first of them has met."""
        self._submit("run", messages)
        answers = self._receive(self._timeout)
        if self._owed and not self._failed(answers):
            raise WorkerTimeoutError(
                f"The workers {sorted(self._owed)} have not made their parts within "
                f"timeout={self._timeout} seconds. Give them more time."
            )
        check_made(self, messages, answers, self._firsts)
        return answers

    def _hand_over(self, workers: Iterable[int]) -> None:
        """Tell workers which rows are theirs, and find out which of them share memory."""
        home = ray.get_runtime_context().get_node_id()
        shapes, n = self._shapes, self._rows[-1].stop
        attach = {}
        for worker in workers:
            self._sharing.discard(worker)
            place = self._place if self._nodes[worker] == home else None
            attach[worker] = dumps_command("attach", shapes, n, self._rows[worker], place)
        for worker, answer in self._talk(attach).items():
            if answer:
                self._sharing.add(worker)

    def _submit(self, method: str, arguments: Mapping[int, Any]) -> None:
        self._end.check_owner()
        # Ray would start a cluster by itself.
        if not ray.is_initialized():
            self.lost |= dict.fromkeys(self._actors, "Ray has been shut down")
            return
        for worker, argument in arguments.items():
            self._submit_to(worker, method, argument)

    def _submit_to(self, worker: int, method: str, argument: Any) -> None:
        try:
            self._owed[worker] = getattr(self._actors[worker], method).remote(argument)
        except Exception as error:  # of an actor of an earlier session of Ray
            self._lose(worker, error)

    def _settle(self) -> None:
        """Take the answers that an interrupt has left behind."""
        if self._owed:
            self.collect()

    def _receive(self, timeout: float | None) -> dict[int, Value]:
        """The answers that come in time; what has not come is still owed."""
        answers: dict[int, Value] = {}
        deadline, grace = Deadline(timeout), Deadline(None)
        while self._owed:
            if grace.timeout is None and self._failed(answers):
                grace = Deadline(_GRACE_SECONDS)
            limits = [left for left in (deadline.left(), grace.left()) if left is not None]
            left = min(limits, default=math.inf)
            refs = {ref: worker for worker, ref in self._owed.items()}
            ready = ready_in_turn(list(refs), left)
            for ref in ready:
                worker = refs[ref]
                answer = self._take(worker, ref)
                del self._owed[worker]
                if answer is not _LOST:
                    answers[worker] = answer
            if left <= 0 and not ready:
                break
        return answers

    def _take(self, worker: int, ref: Any) -> Value:
        """An answer; arrays that come with it are copied to where they belong."""
        try:
            data, *arrays = ray.get(ref)
        except (ray.exceptions.ObjectStoreFullError, ray.exceptions.OutOfDiskError) as error:
            return self._failure(worker, _no_space(), str(error))
        except ray.exceptions.RayTaskError as error:
            return self._failure(worker, error.cause, error.traceback_str)
        except ray.exceptions.RayError as error:
            return self._lose(worker, error)
        answer = pickle.loads(data)
        if not isinstance(answer, Failure) and arrays[0] is not None:
            self._write(self._rows[worker], *arrays)
        return answer

    def _write(self, rows: slice, observations: list[Array], *others: Any) -> None:
        out = self.buffers
        for array, values in zip(self._batch, observations, strict=True):
            array[rows] = values
        if others:
            rewards, ended, truncated, finals = others
            out.rewards[rows], out.ended[rows], out.truncated[rows] = rewards, ended, truncated
            which = rows.start + np.flatnonzero(ended)
            for array, values in zip(out.finals, finals, strict=True):
                array[which] = values

    def _failure(self, worker: int, error: BaseException, trace: str) -> Failure:
        if self._rows:
            rows = self._rows[worker]
            first, where = rows.start, f"rows {rows.start} to {rows.stop - 1}"
        else:
            first = self._firsts[worker]
            where = f"env_fns[{first}] to env_fns[{self._firsts[worker + 1] - 1}]"
        return failure_of(error, first, where, trace)

    def _lose(self, worker: int, error: Exception) -> Value:
        self.lost[worker] = " ".join(str(error).split())[:_MOST_CHARACTERS]
        # It may be alive, and only out of reach.
        self._end.kill(worker)
        return _LOST

    def _discard(self, worker: int) -> None:
        """End a lost actor, whatever it is doing, and forget what it owes."""
        self.lost.setdefault(worker, "it could not be replaced")
        self._owed.pop(worker, None)
        self._nodes.pop(worker, None)
        self._end.kill(worker)


def _no_space() -> WorkerError:
    return WorkerError(
        "Expected room in Ray's object store for the answer of a worker, but it is full, and so is "
        "the disk that it moves objects to. Start Ray with a larger object_store_memory "
        "(`ray start --object-store-memory`, in bytes), or hold fewer rows."
    )


class _End(Owner):
    """Ends actors: at `close`, when the environment is forgotten, at the end of Python."""

    def __init__(self, actors: dict[int, Any], segments: list[Segment]) -> None:
        super().__init__()
        self._actors, self._segments = actors, segments

    def __call__(self) -> None:
        for worker in list(self._actors):
            self.kill(worker)
        for segment in self._segments:
            segment.close()

    def kill(self, worker: int) -> None:
        """End an actor, whatever it is doing."""
        actor = self._actors.pop(worker, None)
        # A fork of the parent has no connection to Ray.
        if actor is not None and ray.is_initialized() and self.owns:
            with suppress(Exception):  # it may be of an earlier session of Ray
                ray.kill(actor)
