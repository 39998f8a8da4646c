"""What the infos of a row show of other rows: of their ends, and of their steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from sb3compat.conformance.checks.tools.evidence import FEWEST, STEPS, distinct, equal
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect, twin_of
from sb3compat.conformance.record import Call, Record
from sb3compat.conformance.rows import Episode, by_row, info_of, info_of_end, obs_of
from sb3compat.conformance.values import Value
from sb3compat.conformance.variants import (
    other_actions_in_the_first_row,
    other_actions_in_the_last_row,
)

# So many steps in which rows end together, and one of them alone tells something, are no chance.
_TOGETHER = 3


def infos_beside_ends(record: Record) -> Iterator[Demand]:
    """Where another row ends, a row that goes on has the infos that it has in all other steps."""
    for i, found in enumerate(by_row(record)):
        steps = [step for e in found for step in e.steps if not (e.over and step is e.end)]
        beside = [info_of(record, step, i) for step in steps if step.flags.any()]
        usual = [set(info_of(record, s, i).value) for s in steps if not s.flags.any()]
        if len(beside) < FEWEST or len(usual) < STEPS:
            continue
        lost = set.intersection(*usual).difference(*(info.value for info in beside))
        for key in sorted(lost - {"TimeLimit.truncated"}, key=str):
            yield expect(
                f"{key!r} in {{0}}",
                beside[-1],
                what="list({0})",
                should=f"with {key!r}, as in all steps without an end: only another row has ended",
                row=i,
            )


def infos_of_ends_together(record: Record) -> Iterator[Demand]:
    """Where rows end in one step, each has the infos that it has where it ends alone."""
    over = [e for found in by_row(record) for e in found if e.over]
    alone = [set(info_of_end(record, e).value) for e in over if e.end.ended == [e.row]]
    together: dict[tuple[int, bool], list[Episode]] = {}
    for episode in over:
        # What truncations tell may be something else.
        together.setdefault((episode.end.number, episode.cut), []).append(episode)
    groups = [group for group in together.values() if len(group) > 1]
    if len(alone) < FEWEST or len(groups) < _TOGETHER:
        return
    for key in sorted(set.intersection(*alone), key=str):
        with_it = [[key in info_of_end(record, e).value for e in group] for group in groups]
        if all(sum(has) == 1 for has in with_it):
            lost = groups[-1][with_it[-1].index(False)]
            yield expect(
                f"{key!r} in {{0}}",
                info_of_end(record, lost),
                what="list({0})",
                should=f"with {key!r}, as where a row ends alone: of rows that end in one step, "
                "only one has it",
                row=lost.row,
            )


def infos_of_their_own(record: Record) -> Iterator[Demand]:
    """No part of all rows' infos is that of the first row alone, or of the last one.

    It is alike in all rows, changes with the actions of this row, and with those of no other.

    Raises:
        NotExercisedError: If there is no such part, or too little changes.
    """
    keys = _alike_in_all_rows(record)
    if not keys:
        raise NotExercisedError("the rows have no infos in common that change")
    first, last = 0, record.num_envs - 1
    by_first = twin_of(record, other_actions_in_the_first_row)
    by_last = twin_of(record, other_actions_in_the_last_row)
    for i, own, of, other in ((first, by_first, last, by_last), (last, by_last, first, by_first)):
        moved = len(_changed(record, own, lambda call, of: obs_of(of, call, i)))
        if moved < FEWEST or _changed(record, other, lambda call, of: obs_of(of, call, i)):
            continue
        record.judged = True
        for key in keys:
            changed = _changed(record, other, lambda call, of: info_of(of, call, i)[key])
            if changed and not _changed(record, own, lambda call, of: info_of(of, call, i)[key]):
                should = f"as it was: it does not change with the actions of its own row, but of {of}"
                yield expect("equal({0}, {1})", *changed[0], should=should, row=i)


def _alike_in_all_rows(record: Record) -> list[str]:
    """The keys under which all rows have equal containers in each step, which change."""
    infos = [[info_of(record, step, i).value for i in record.rows] for step in record.steps]
    shared = set.intersection(*(set(info) for row in infos for info in row)) if infos else set()
    found = []
    for key in sorted(shared, key=str):
        values = [[info[key] for info in row] for row in infos]
        alike = all(equal(value, row[0]) for row in values for value in row)
        several = all(isinstance(row[0], dict | list | tuple | np.ndarray) for row in values)
        found += [key] if alike and several and distinct([row[0] for row in values]) >= FEWEST else []
    return found


def _changed(
    record: Record, twin: Record, part: Callable[[Call, Record], Value]
) -> list[tuple[Value, Value]]:
    """The parts of the twin's steps that differ, and what they were."""
    pairs = zip(twin.steps, record.steps, strict=False)
    found = [(part(a, twin), part(b, record)) for a, b in pairs]
    return [pair for pair in found if not equal(pair[0].value, pair[1].value)]
