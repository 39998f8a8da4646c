"""The source of transitions for rows in workers: processes or Ray actors."""

from __future__ import annotations

import pickle
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from sb3compat._convert.infos import TERMINAL_OBSERVATION, TRUNCATED
from sb3compat._convert.observations import Observations
from sb3compat._convert.split_infos import least_infos, split_step_infos
from sb3compat._convert.types import (
    Array,
    Command,
    Flags,
    Info,
    Options,
    Rows,
    Seeds,
    Transition,
)
from sb3compat._ipc.turn import Turn, one_at_a_time
from sb3compat._parallel.extras import Extras, OwnArray, collected, joined
from sb3compat._parallel.messages import Described, Failure, named
from sb3compat._parallel.workers import Workers
from sb3compat.errors import CallOrderError, WorkerError, was_closed

WORKER_LOST = "sb3compat.worker_lost"


@dataclass
class WorkerTimes:
    """The time that steps took, in seconds.

    Attributes:
        stepped: How long each worker has stepped its rows; float64 of shape `(workers,)`.
        waited: How long this process has waited for their answers.
        steps: How many steps that were.
        restarts: How many lost workers were replaced, since the environment was made.
    """

    stepped: Array
    waited: float
    steps: int
    restarts: int


class ParallelRows:
    """Rows in workers, driven by `VecEnvAdapter` as any other source.

    Args:
        workers: The workers, started; and attached before the first reset.
        parts: What each of them has made.
        observations: The layout of the observations of all rows.
        copy: Whether each step returns arrays of its own.
        restart: Whether lost workers are replaced, and their rows end their episodes.

    Attributes:
        rows: The rows of each worker.
        single: Whether all parts are single environments, which take seeds and options of their
            own.
    """

    def __init__(
        self,
        workers: Workers,
        parts: Sequence[Described],
        observations: Observations,
        *,
        copy: bool,
        restart: bool,
    ) -> None:
        self._workers = workers
        self._turn = Turn()
        ends = accumulate((sum(part.rows) for part in parts), initial=0)
        self.rows = [slice(start, stop) for start, stop in pairwise(ends)]
        self._starts = [own.start for own in self.rows]
        self.num_envs = observations.num_envs
        self._observations = observations
        self._copy = copy
        self.restarts = restart
        self.single = all(part.single for part in parts)
        self.seeds_rows = all(part.seeds_rows for part in parts)
        self.busy = self._closed = False
        # Whether options, even empty ones, were set for the next reset.
        self._options_set = False
        # The infos of a step that is under way, as far as they are known before.
        self._infos: list[Info] = []
        # How long the steps of each worker, and the waits for them, have taken; measured from the
        # first request on.
        self._times: WorkerTimes | None = None
        # Workers that have replaced others, as long as no infos have said so.
        self._new: set[int] = set()
        # The last returned observations, for the rows of workers that are lost afterwards.
        self._last: list[Array] = []

    @property
    def broken(self) -> bool:
        """Whether a worker is lost for good."""
        return bool(self._workers.lost) and not self.restarts

    lost = broken  # as `RowCommands` has it

    @one_at_a_time
    def ask(self, commands: Mapping[int, Command]) -> dict[int, Any]:
        """Give rows a command each, then collect the results; the others are not asked.

        Raises:
            ClosedError: If the environment was closed.
            CallOrderError: If a step, or another call, is under way.
            WorkerError: If a worker has died.
            Exception: What a row has raised; if several have, the first one in this order.
        """
        if self._closed:
            raise was_closed("this ParallelVecEnv")
        if self.busy:
            raise CallOrderError(
                "Expected no step under way, got a call between step_async() and step_wait(). Call "
                "step_wait() first."
            )
        shares: dict[int, dict[int, Command]] = {}
        for row, command in commands.items():
            shares.setdefault(self.worker_of(row), {})[row] = command
        given = self.command({worker: ("ask", own) for worker, own in shares.items()})
        answers = {row: answer for own in given.values() for row, answer in own.items()}
        results: dict[int, Any] = {}
        for row in (row for row in commands if row in answers):
            results[row] = pickle.loads(answers[row])
            if isinstance(results[row], Failure):
                results[row].reraise()
        return results

    def worker_of(self, row: int) -> int:
        """The worker that holds a row."""
        return bisect_right(self._starts, row) - 1

    @one_at_a_time
    def check_options(self, options: Sequence[Options]) -> None:
        """Refuse options that the parts could not apply to their rows."""
        self._options_set = True
        if self.single or self.busy:
            return
        # Those of workers that will be replaced are checked in the reset.
        lost = self._workers.lost if self.restarts else ()
        commands = {
            worker: ("check_options", list(options[rows]))
            for worker, rows in enumerate(self.rows)
            if worker not in lost
        }
        self._check(self._exchange(commands))

    @one_at_a_time
    def reset(self, seeds: Seeds, options: Sequence[Options]) -> tuple[list[Array], list[Info]]:
        """Reset all rows, in parallel; lost workers are replaced first, if that was asked for.

        The infos of their rows say so, because new rows without a seed draw other random numbers.
        """
        were_set = self._options_set or any(options)
        commands = {
            worker: ("reset", list(seeds[rows]), list(options[rows]) if were_set else None)
            for worker, rows in enumerate(self.rows)
        }
        self._restart_lost()
        answers = self._exchange(commands)
        again = self._restart_lost()
        if again:
            answers |= self._exchange({worker: commands[worker] for worker in again})
            if self._workers.lost:
                raise self._lost(min(self._workers.lost))
        self._check(answers)
        extras = collected(answers.values())
        for row in (row for worker in self._new for row in self._rows_of(worker)):
            extras.reset_infos[row][WORKER_LOST] = True
        batch = self._batch(extras.arrays)
        self._options_set = False
        self._new.clear()
        return batch, [extras.reset_infos[row] for row in range(self.num_envs)]

    @one_at_a_time
    def send(self, actions: list[Array]) -> None:
        """Start a step."""
        self._check({})
        self.busy = True
        self._workers.send_step(actions)
        self._infos = least_infos(self.num_envs)  # while the workers step

    @one_at_a_time
    def receive(self) -> Transition:
        """Finish the step."""
        self.busy = False
        if self._times is None:
            answers = self._workers.collect()
        else:
            begin = time.perf_counter()
            answers = self._workers.collect()
            self._times.waited += time.perf_counter() - begin
            self._times.steps += 1
        self._check(answers)
        extras = collected(answers.values())
        replaced: list[int] = []
        for worker in list(self._workers.lost):
            self._replace(worker, extras)
            replaced += self._rows_of(worker)
        out = self._workers.buffers
        ended, truncated = out.ended.copy(), out.truncated.copy()
        infos = self._row_infos(extras, truncated, np.flatnonzero(ended))
        rewards = joined(out.rewards.copy(), len(out.observations), extras.arrays, replaced)
        batch = self._batch(extras.arrays)
        self._new.clear()
        return Transition(batch, rewards, ended, truncated, infos, extras.reset_infos)

    def _row_infos(self, extras: Extras, truncated: Flags, rows: Rows) -> list[Info]:
        """The infos of all rows; these have ended."""
        infos, self._infos = self._infos or least_infos(self.num_envs), []
        for own, given in extras.vectors:
            infos[own] = split_step_infos(given, truncated[own])
        for row, info in extras.infos.items():
            infos[row] = info
        # For the other rows that have ended, the arrays tell how.
        others = [row for row in rows.tolist() if row not in extras.infos]
        finals = self._workers.buffers.finals[0][others] if others else ()
        for row, final in zip(others, finals, strict=True):
            infos[row] |= {TRUNCATED: bool(truncated[row]), TERMINAL_OBSERVATION: final}
        for row in rows.tolist():
            extras.reset_infos.setdefault(row, {})
        return infos

    @one_at_a_time
    def times(self) -> WorkerTimes:
        """How long steps and waits have taken since this was called the first time."""
        if self._times is None:
            self._times = WorkerTimes(np.zeros(len(self.rows)), 0.0, 0, 0)
        alive = [worker for worker in range(len(self.rows)) if worker not in self._workers.lost]
        answers = self._exchange(dict.fromkeys(alive, ("times",)))
        self._check(answers)  # one that has died since is replaced by the next step
        for worker, seconds in answers.items():
            self._times.stepped[worker] += seconds
        restarted = self._workers.restarted
        return replace(self._times, stepped=self._times.stepped.copy(), restarts=restarted)

    @one_at_a_time
    def cancel(self) -> None:
        """Wait for the step that is under way, and drop its results."""
        if self.busy:
            self.busy = False
            self._workers.collect()

    @one_at_a_time
    def render(self) -> list[Any]:
        """One frame for each row."""
        answers = self.command(dict.fromkeys(range(len(self.rows)), ("render",)))
        return [frame for worker in sorted(answers) for frame in answers[worker]]

    def close(self) -> None:
        """Close the parts, and end the workers."""
        under_way = False
        try:
            self._turn.check()
        except CallOrderError:  # that call, of this thread or a long one, will raise
            under_way = True
        self.busy, self._closed = False, True
        with nullcontext() if under_way else self._turn:
            self._workers.close(under_way=under_way)

    def command(self, commands: Mapping[int, Sequence[Any]]) -> dict[int, Any]:
        """Give some workers a command each, and return their answers.

        Raises:
            WorkerError: If a worker is lost; with a restart, the next step or reset replaces it.
            Exception: What a worker has raised, that of the first row if several have.
        """
        answers = self._exchange(commands)
        self._check(answers, set(commands))
        return answers

    def _exchange(self, commands: Mapping[int, Sequence[Any]]) -> dict[int, Any]:
        self._check({})
        self._workers.send(commands)
        return self._workers.collect()

    def _check(self, answers: Mapping[int, Any], needed: set[int] | None = None) -> None:
        """Raise the error of the first failed row: an exception, or the loss of its worker."""
        lost = self._workers.lost
        fatal = min((lost if needed is None else lost.keys() & needed), default=None)
        if needed is None and self.restarts:
            fatal = None
        failures = [answer for answer in answers.values() if isinstance(answer, Failure)]
        first = min(failures, key=lambda failure: failure.row, default=None)
        if fatal is not None and (first is None or self.rows[fatal].start <= first.row):
            raise self._lost(fatal)
        if first is not None:
            first.reraise()

    def _lost(self, worker: int) -> WorkerError:
        way = (
            "The next step or reset recreates its environments."
            if self.restarts
            else "Close this environment and build a new one; with on_worker_lost='restart', a "
            "lost worker is replaced."
        )
        return WorkerError(
            f"The {self._workers.noun} of {named(self.rows[worker])} has died without an "
            f"answer ({self._workers.lost[worker]}); its own output may say why. {way}"
        )

    def _replace(self, worker: int, extras: Extras) -> None:
        """Recreate the environments of a lost worker; their episodes end as truncated."""
        rows, out = self.rows[worker], self._workers.buffers
        self._restart(worker)
        reset = "reset", [None] * len(self._rows_of(worker)), None
        first: Extras = self.command({worker: reset})[worker]
        extras.reset_infos.update(first.reset_infos)
        extras.arrays.extend(first.arrays)
        out.rewards[rows], out.ended[rows], out.truncated[rows] = 0, True, True
        finals = self._observations.rows(self._last, np.array(self._rows_of(worker)))
        for row, final in zip(self._rows_of(worker), finals, strict=True):
            extras.infos[row] = {WORKER_LOST: True, TRUNCATED: True, TERMINAL_OBSERVATION: final}

    def _rows_of(self, worker: int) -> range:
        return range(self.rows[worker].start, self.rows[worker].stop)

    def _restart_lost(self) -> list[int]:
        """Replace the workers that are lost, if that was asked for; which these were."""
        lost = sorted(self._workers.lost) if self.restarts else []
        for worker in lost:
            self._restart(worker)
        return lost

    def _restart(self, worker: int) -> None:
        """Start a worker anew; where times are measured, the new one measures them, too."""
        self._new.add(worker)
        self._workers.restart(worker)
        if self._times is not None:
            self._exchange({worker: ("times",)})  # the next command notices if it has died again

    def _batch(self, own_arrays: Sequence[OwnArray]) -> list[Array]:
        shared = self._workers.buffers.observations
        arrays = [array.copy() for array in shared] if self._copy else shared
        batch = [joined(array, number, own_arrays) for number, array in enumerate(arrays)]
        if self.restarts:
            self._last = [array.copy() for array in batch]
        return batch
