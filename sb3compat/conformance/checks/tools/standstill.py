"""Rows that stand still in some steps, where other steps move them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sb3compat.conformance.checks.tools.evidence import CHANCE, STEPS, moves_of
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Record
from sb3compat.conformance.rows import by_row, episodes
from sb3compat.conformance.values import Several

equal = PRELUDE["equal"]


def no_standstill_after_ends(record: Record) -> Iterator[Demand]:
    """A row does not stand still in each step after an end of its own, if it does so rarely else.

    It must never do so after a reset: the first action may take effect late by design.

    Raises:
        NotExercisedError: If it cannot be told.
    """
    first = {(e.row, e.steps[0].number): e.by for e in episodes(record) if e.steps}
    after = {place for place, by in first.items() if by != "reset"}
    should = "another than before, as the row was stepped: other steps move it"
    yield from _no_standstill(record, after, should, first.keys() - after)


def no_standstill_beside_resets(record: Record) -> Iterator[Demand]:
    """A row does not stand still in each step in which another one resets itself.

    In DISABLED mode, where rows do not do so, it is the step in which another one ends.

    Raises:
        NotExercisedError: If it cannot be told.
    """
    found = episodes(record)
    resets = [(e.row, e.start.number) for e in found if e.by == "auto"]
    if record.mode == "Disabled":
        resets = [(e.row, e.end.number) for e in found if e.over]
    while_others = {(i, step) for row, step in resets for i in record.rows if i != row}
    should = "another than before, as the row was stepped while others were reset"
    yield from _no_standstill(record, while_others, should)


def _no_standstill(
    record: Record,
    asked: Collection[tuple[int, int]],
    should: str,
    never: Collection[tuple[int, int]] = (),
) -> Iterator[Demand]:
    """A row does not stand still in all steps that are asked for, by what it does in the others.

    Args:
        record: The record.
        asked: These steps, with the row.
        should: What was expected.
        never: The steps in which it never may, or nothing can be told.

    Raises:
        NotExercisedError: If it cannot be told.
    """
    for i, found in enumerate(by_row(record)):
        steps = [
            (step.number, pair)
            for episode in found
            for step, pair in zip(episode.steps, moves_of(episode), strict=False)
        ]
        mine = [pair for number, pair in steps if (i, number) in asked]
        rest = [pair for number, pair in steps if (i, number) not in asked]
        still = sum(equal(before.value, after.value) for before, after in rest)
        if any((i, n) in never and equal(a.value, b.value) for n, (a, b) in steps):
            continue
        if len(rest) < STEPS or ((still + 1) / (len(rest) + 2)) ** len(mine) >= CHANCE:
            continue
        record.judged = True
        yield expect(
            "not all(map(equal, {0}, {1}))",
            Several([after for _, after in mine]),
            Several([before for before, _ in mine]),
            what="{0}[-1]",
            should=should,
            row=i,
        )
    if not record.judged:
        raise NotExercisedError("too few episodes ended, or rows stand still in other steps, too")
