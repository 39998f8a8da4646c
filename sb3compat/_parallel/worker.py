"""The rows of one worker, and the commands that its parent gives; wherever the worker runs."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from sb3compat._convert.arrays import frames_of
from sb3compat._convert.types import Command, Options, Seeds
from sb3compat._ipc.ready import Spin
from sb3compat._parallel.extras import Extras, no_extras, tables_of
from sb3compat._parallel.made_once import environments_in, position_of
from sb3compat._parallel.memory import Buffers, buffers_in, size_of
from sb3compat._parallel.messages import (
    Described,
    can_send,
    dumps,
    dumps_answer,
    failure_of,
)
from sb3compat._parallel.parts import EnvFn, Part, Parts, layouts
from sb3compat._parallel.program import Program

NOTHING = dumps(None)


class Worker:
    """What a worker does, in a process or a Ray actor: it runs the commands of its parent.

    Each command returns a pickled answer. An exception becomes an answer as well, a `Failure`, so
    that the worker keeps running.

    Args:
        memory: Finds memory of so many bytes that the parent shares, by what it says of it; None
            if it cannot be reached from here.
        env_fns: The functions that make the parts, where they do not come with a command.
        note: Called with the number of each of them before it is called.

    Attributes:
        buffers: The arrays of the rows of all workers.
        rows: Its own rows.
        shares: Whether the parent sees the arrays.
        spin: Looks for the next command before sleeping until it comes, if that was asked for.
        pid: The number of the process, if it is a worker's.
    """

    buffers: Buffers
    rows: slice
    shares = False

    def __init__(
        self,
        memory: Callable[[int, Any], Any],
        env_fns: Sequence[EnvFn] | None = None,
        note: Callable[[int], None] = lambda function: None,
    ) -> None:
        self._memory = memory
        self._env_fns = env_fns
        self._note = note
        self._parts = Parts()
        self.spin: Spin | None = None
        self.pid: int | None = None
        self._program: Program | None = None
        # How long the steps have taken, if time is measured.
        self._seconds = 0.0
        # The rows or the function that an exception concerns.
        self._row = 0
        self._where = "a command"

    def run(self, data: bytes) -> tuple[str, bytes]:
        """Run a command by the method `_name`; returns its name and the answer.

        The name is empty where the command cannot be unpickled here.
        """
        name = ""
        try:
            name, *args = pickle.loads(data)
            result = getattr(self, f"_{name}")(*args)
            return name, dumps_answer(result, self._row, self._where)
        except BaseException as error:
            if self.is_copy:
                raise
            return name, dumps(failure_of(error, self._row, self._where))

    @property
    def is_copy(self) -> bool:
        """Whether an environment has forked the worker, and this is the copy.

        It has no commands to answer, and ends.
        """
        return self.pid not in (None, os.getpid())

    def step(self) -> bytes:
        """Step all rows with the actions that are in the arrays."""
        extras = no_extras()
        try:
            # Copied, as an environment may keep its action.
            actions = [array.copy() for array in self.buffers.actions]
            for part in self._parts:
                self._concerns(part)
                part.send(actions)
            for part in self._parts:
                self._concerns(part)
                self._receive(part, extras)
        except BaseException as error:
            if self.is_copy:
                raise
            self._cancel()
            return dumps(failure_of(error, self._row, self._where))
        if not any(extras):
            return NOTHING
        infos, tables = tables_of(extras.infos)
        extras = extras._replace(infos=infos, tables=tables)
        return dumps_answer(extras, self._row, self._where)

    def _times(self) -> float:
        """How many seconds its steps have taken since this was asked the last time.

        Steps are measured from the first call on; before, a step does not read the clock.
        """
        seconds, self._seconds = self._seconds, 0.0
        vars(self)["step"] = self._timed_step
        return seconds

    def _timed_step(self) -> bytes:
        begin = time.perf_counter()
        try:
            return type(self).step(self)
        finally:
            self._seconds += time.perf_counter() - begin

    def _receive(self, part: Part, extras: Extras) -> None:
        """Finish the step of a part."""
        try:
            part.receive(self.buffers, extras, shared=self.shares)
        except BaseException:
            self._concerns(part, part.failed)
            raise

    def _cancel(self) -> None:
        """End the steps of parts that are under way, after an exception in another one."""
        for part in self._parts:
            with suppress(BaseException):
                part.source.cancel()

    def _begin(self, program: Program | None, spin_seconds: float = 0.0) -> None:
        """Take over the state of the program, which a fork already has."""
        self.spin = Spin(spin_seconds) if spin_seconds else None
        self._program = program
        if program is not None:
            program.take_over()

    def _make(self, pickled: bytes | None, first_fn: int) -> Described:
        parts = self._parts
        parts.making = first_fn
        try:
            self._note(first_fn)  # what it needs is imported now
            env_fns = (self._env_fns or ()) if pickled is None else pickle.loads(pickled)
            before = list(map(environments_in, env_fns))
            if self._program is not None:
                env_fns = [partial(self._program.make, env_fn) for env_fn in env_fns]
            parts.make(env_fns, first_fn, self._note)
        except BaseException as error:
            self._where = f"env_fns[{parts.making}]"
            if self._program is not None:
                self._program.note(error)
            with suppress(BaseException):
                self._close()
            raise
        first = parts.envs[0]
        spec = getattr(first, "spec", None)
        given = dict(getattr(first, "metadata", None) or {})
        return Described(
            parts.counts,
            parts.spaces,
            parts.shown_space,
            {k: v for k, v in given.items() if k != "autoreset_mode" and can_send(v)},
            dumps(spec) if can_send(spec) else None,
            all(part.single for part in parts),
            all(part.source.seeds_rows for part in parts),
            parts.largest_seed,
            list(map(position_of, parts.envs, before)),
        )

    def _attach(self, num_envs: int, rows: slice, way: Any) -> bool:
        """Write into the arrays from now on; returns whether the parent shares their memory."""
        batches = layouts(self._parts.spaces, num_envs)
        size = size_of(*batches)
        memory = self._memory(size, way)
        self.shares = memory is not None
        if memory is None:
            # For all rows, so that they have their numbers; it takes only what is written to.
            memory = np.zeros(size, np.uint8)
        self.buffers, self.rows = buffers_in(memory, *batches), rows
        first = rows.start
        for part in self._parts:
            first = part.number_from(first)
        return self.shares

    def _check_options(self, options: Sequence[Options]) -> None:
        for part in self._parts:
            self._concerns(part)
            part.source.check_options(self._share(part, options))

    def _reset(self, seeds: Seeds, options: Sequence[Options] | None) -> Extras:
        """Reset all rows; options are None if none were set since the last time."""
        extras = no_extras()
        for part in self._parts:
            self._concerns(part)
            own = None if options is None else self._share(part, options)
            try:
                infos, arrays = part.reset(self.buffers, self._share(part, seeds), own)
            except BaseException:
                self._concerns(part, part.failed)
                raise
            extras.reset_infos.update(enumerate(infos, part.rows.start))
            extras.arrays.extend(arrays)
        return extras

    def _render(self) -> list[Any]:
        frames: list[Any] = []
        for part in self._parts:
            self._concerns(part)
            number = part.rows.stop - part.rows.start
            frames += frames_of(part.source.render(), number, f"render() of {part.name}")
        return frames

    def _ask(self, commands: Mapping[int, Command]) -> dict[int, bytes]:
        """Run a command for each of some rows; the answers are pickled.

        Single environments are asked one by one, and one row's error is that row's. The rows of
        another part have the same command, and are asked together.
        """
        answers: dict[int, bytes] = {}
        by_part = sorted(commands, key=lambda row: self._part_of(row).rows.start)
        for part, group in groupby(by_part, self._part_of):
            rows = list(group)
            for some in [[row] for row in rows] if part.single else [rows]:
                answers |= self._ask_part(part, commands[some[0]], some)
        return answers

    def _ask_part(self, part: Part, command: Command, rows: list[int]) -> dict[int, bytes]:
        where = f"row {rows[0]}" if part.single else part.where
        try:
            values = part.subenvs.ask(command, [row - part.rows.start for row in rows])
        except BaseException as error:
            return {rows[0]: dumps(failure_of(error, rows[0], where))}
        # Pickled before the next row is stepped, which may change objects that rows share.
        return {
            row: dumps_answer(value, row, where) for row, value in zip(rows, values, strict=True)
        }

    def _close(self) -> None:
        """Close everything, also after an error of one part."""
        errors: list[BaseException] = []
        envs, self._parts.envs = self._parts.envs, []
        for env in envs:
            try:
                env.close()
            except BaseException as error:  # noqa: PERF203
                errors.append(error)
        if errors:
            raise errors[0]

    def _share(self, part: Part, values: Sequence[Any]) -> Sequence[Any]:
        """The part's share of what there is one of for each row of this worker."""
        first = self.rows.start
        return values[part.rows.start - first : part.rows.stop - first]

    def _part_of(self, row: int) -> Part:
        return next(part for part in self._parts if part.rows.start <= row < part.rows.stop)

    def _concerns(self, part: Part, row: int | None = None) -> None:
        """Note what an exception would concern."""
        self._row = part.rows.start if row is None else row
        self._where = part.where if row is None else f"row {row}"
