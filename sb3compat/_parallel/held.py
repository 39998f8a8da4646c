"""The rows of one worker, and the commands that its parent gives; wherever the worker runs."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from sb3compat._convert.infos import TERMINAL_OBSERVATION, TRUNCATED
from sb3compat._convert.types import Info, Observation, Options, Seeds, Value
from sb3compat._ipc.worker_questions import has_wrapper
from sb3compat._parallel.columns import by_column
from sb3compat._parallel.memory import Buffers
from sb3compat._parallel.messages import (
    Began,
    Described,
    Failure,
    News,
    can_send,
    dumps,
    dumps_answer,
    failure_of,
)
from sb3compat._parallel.parts import EnvFn, Made, Part
from sb3compat._parallel.program import Program
from sb3compat._parallel.unshared import Unshared, share
from sb3compat._rows.commands import run_command
from sb3compat._to_sb3.rows_sync import EnvRows

NOTHING = dumps(None)


class HeldRows:
    """The rows of one worker.

    Each command returns an answer, pickled. What it raises is an answer as well, a `Failure`, so
    that the worker goes on.
    """

    def __init__(self) -> None:
        self._made = Made()
        self._program: Program | None = None
        self._buffers: Buffers
        # What an exception concerns.
        self._row = 0
        self._where = ""

    def run(self, name: str, args: Sequence[Any]) -> bytes:
        """Run the command of that name."""
        commands: dict[str, Callable[..., Value]] = {
            "begin": self._begin,
            "make": self._make,
            "check_options": self._check_options,
            "check_started": self._check_started,
            "reset": self._reset,
            "render": self._render,
            "reach": self._reach,
            "ask": self._ask,
            "close": self._close,
        }
        try:
            return dumps_answer(commands[name](*args), self._row, self._where)
        except BaseException as error:
            return dumps(failure_of(error, self._row, self._where))

    def refuse(self, error: BaseException) -> bytes:
        """The answer to a command that cannot be unpickled here."""
        return dumps(failure_of(error, self._row, self._where or "a command"))

    def attach(self, buffers: Buffers, first: int) -> None:
        """Write into these arrays from now on, from row `first` on."""
        self._buffers = buffers
        self._made.number_from(first)
        for part in self._made.parts:
            if isinstance(part.source, EnvRows):
                part.source.first = part.first
                part.source.batch = buffers.observations

    def step(self) -> bytes:
        """Step all rows with the actions that are in the arrays."""
        try:
            # Copied, as an environment may keep its action.
            actions = [array.copy() for array in self._buffers.actions]
            parts = self._made.parts
            for part in parts:
                self._concerns(part)
                part.source.send([array[part.rows] for array in actions])
            infos: dict[int, Info] = {}
            reset_infos: dict[int, Info] = {}
            unshared: list[Unshared] = []
            for part in parts:
                self._concerns(part)
                unshared += self._receive(part, infos, reset_infos)
        except BaseException as error:
            self._cancel()
            return dumps(failure_of(error, self._row, self._where))
        if not infos and not reset_infos and not unshared:
            return NOTHING
        news = News(*by_column(infos), reset_infos, unshared)
        return dumps_answer(news, self._row, self._where)

    def _receive(
        self, part: Part, infos: dict[int, Info], reset_infos: dict[int, Info]
    ) -> list[Unshared]:
        """Finish the step of a part, and sort out what does not fit into the arrays."""
        rows, out = part.rows, self._buffers
        unshared: list[Unshared] = []
        if isinstance(part.source, EnvRows):
            out.ended[rows] = False
            out.truncated[rows] = False
            try:
                row_infos, resets = part.source.step_into(
                    out.observations, out.rewards, out.ended, out.truncated
                )
            except BaseException:
                self._concerns(part, part.source.failed)
                raise
        else:
            step = part.source.receive()
            unshared = share(
                [*out.observations, out.rewards],
                rows,
                [*step.observations, step.rewards],
                part.name,
            )
            out.ended[rows], out.truncated[rows] = step.ended, step.truncated
            row_infos = step.infos
            resets = {part.first + i: info for i, info in step.reset_infos.items()}
        for i in resets:
            self._save_final(i, row_infos[i - part.first])
        for i, (info, cut) in enumerate(
            zip(row_infos, out.truncated[rows].tolist(), strict=True), part.first
        ):
            # Of most rows, the arrays say all that there is.
            if len(info) != 1 or info.get(TRUNCATED) is not cut or type(info) is not dict:
                infos[i] = info
        reset_infos.update(
            (i, info) for i, info in resets.items() if info or type(info) is not dict
        )
        return unshared

    def _save_final(self, row: int, info: Info) -> None:
        """Move the last observation into the arrays, if it comes out of them as it is."""
        leaves = self._leaves(info[TERMINAL_OBSERVATION]) if type(info) is dict else None
        if leaves is not None:
            for array, value in zip(self._buffers.finals, leaves, strict=True):
                array[row] = value
            del info[TERMINAL_OBSERVATION]

    def _leaves(self, final: Observation) -> list[Value] | None:
        layout = self._made.layout
        keys = layout.keys
        if keys is None:
            leaves = [final]
        elif type(final) is dict and list(final) == keys:
            leaves = list(final.values())
        elif type(final) is tuple and len(final) == len(keys):
            leaves = list(final)
        else:
            return None
        for leaf, value in zip(layout.leaves, leaves, strict=True):
            kind = np.ndarray if leaf.shape else leaf.dtype.type
            if type(value) is not kind or value.dtype != leaf.dtype or value.shape != leaf.shape:
                return None
        return leaves

    def _cancel(self) -> None:
        """End the steps of parts that are under way, after an exception in another one."""
        for part in self._made.parts:
            with suppress(BaseException):
                part.source.cancel()

    def _begin(self, program: Program | None) -> None:
        """Take over what the program knows; a fork of it knows it already."""
        self._program = program
        if program is not None:
            program.take_over()

    def _make(self, env_fns: Sequence[EnvFn] | bytes, first_fn: int) -> Described:
        made = self._made
        made.making = first_fn
        try:
            env_fns = pickle.loads(env_fns) if isinstance(env_fns, bytes) else env_fns
            if self._program is not None:
                env_fns = [partial(self._program.make, env_fn) for env_fn in env_fns]
            made.make(env_fns, first_fn)
        except BaseException as error:
            self._where = f"env_fns[{made.making}]"
            if self._program is not None:
                self._program.note(error)
            with suppress(BaseException):
                self._close()
            raise
        first = made.envs[0]
        spec = getattr(first, "spec", None)
        sent = dumps(spec) if can_send(spec) else None
        given = dict(getattr(first, "metadata", None) or {})
        metadata = {k: v for k, v in given.items() if k != "autoreset_mode" and can_send(v)}
        seeds_rows = all(part.source.seeds_rows for part in made.parts)
        return Described(
            made.counts,
            *made.spaces,
            made.shown_space,
            metadata,
            sent,
            made.single,
            seeds_rows,
        )

    def _check_options(self, options: Sequence[Options]) -> None:
        for part, own in self._shares(options):
            self._concerns(part)
            part.source.check_options(own)

    def _check_started(self) -> None:
        for part in self._made.parts:
            self._concerns(part)
            part.source.check_started()

    def _reset(self, seeds: Seeds, options: Sequence[Options] | None) -> Began:
        """Reset all rows; options are None if none were set since the last time."""
        began = Began([], [])
        shares = self._shares([{}] * len(seeds) if options is None else options)
        for (part, own_seeds), (_, own) in zip(self._shares(seeds), shares, strict=True):
            self._concerns(part)
            if options is not None and not isinstance(part.source, EnvRows):
                part.source.check_options(own)
            try:
                batch, infos = part.source.reset(own_seeds, own)
            except BaseException:
                self._concerns(part, getattr(part.source, "failed", None))
                raise
            if not isinstance(part.source, EnvRows):
                own_arrays = share(self._buffers.observations, part.rows, batch, part.name)
                began.unshared.extend(own_arrays)
            began.infos.extend(infos)
        return began

    def _render(self) -> list[Value]:
        frames: list[Value] = []
        for part in self._made.parts:
            self._concerns(part)
            frames += list(part.source.render())
        return frames

    def _reach(self, method: str, args: Sequence[Any], rows: Sequence[int]) -> list[Value] | None:
        """Call a method of the parts' `SubEnvs` for some rows; the results are in that order."""
        results: list[Value] = []
        for part, group in groupby(rows, self._part_of):
            found = self._reach_in(part, method, args, [row - part.first for row in group])
            results += found or []
        return results

    def _reach_in(
        self, part: Part, method: str, args: Sequence[Any], rows: list[int]
    ) -> list[Value] | None:
        if method == "is_wrapped":
            names, data = args
            if part.envs is not None:
                return [has_wrapper(part.envs[row], *names) for row in rows]
            args = [pickle.loads(data)]
        call = getattr(part.subenvs, method)
        if part.envs is None:
            self._concerns(part)
            return call(*args, rows)  # type: ignore[no-any-return]
        results: list[Value] = []
        for row in rows:
            self._concerns(part, part.first + row)
            results += call(*args, [row]) or []
        return results

    def _ask(self, commands: Mapping[int, tuple[Any, ...]]) -> dict[int, Value | Failure]:
        """Run commands on single environments, each on its own: one row's error is that row's."""
        answers: dict[int, Value | Failure] = {}
        for row, (name, *args) in commands.items():
            part = self._part_of(row)
            assert part.envs is not None
            try:
                # Pickled before the next row is stepped, which may change what they share.
                answers[row] = dumps(run_command(part.envs[row - part.first], name, *args))
            except BaseException as error:
                answers[row] = failure_of(error, row, f"row {row}")
        return answers

    def _close(self) -> None:
        """Close everything, also after an error of one part."""
        errors: list[BaseException] = []
        envs, self._made.envs = self._made.envs, []
        for env in envs:
            try:
                env.close()
            except BaseException as error:  # noqa: PERF203
                errors.append(error)
        if errors:
            raise errors[0]

    def _shares(self, values: Sequence[Any]) -> list[tuple[Part, Sequence[Any]]]:
        """The parts, each with its share of what there is one of for each row of this worker."""
        first = self._made.parts[0].first
        return [
            (part, values[part.rows.start - first : part.rows.stop - first])
            for part in self._made.parts
        ]

    def _part_of(self, row: int) -> Part:
        return next(p for p in self._made.parts if p.rows.start <= row < p.rows.stop)

    def _concerns(self, part: Part, row: int | None = None) -> None:
        """Note what an exception would concern."""
        count = part.rows.stop - part.rows.start
        self._row = part.first if row is None else row
        alone = row is not None or count == 1
        self._where = f"row {self._row}" if alone else f"rows {part.first} to {part.rows.stop - 1}"
