"""What the infos of a row show of other rows: of their ends, and of their steps."""

from __future__ import annotations

from collections.abc import Iterator

from sb3compat.conformance.checks.tools.evidence import FEWEST, STEPS, distinct, equal
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect, twin_of
from sb3compat.conformance.record import Record
from sb3compat.conformance.rows import Episode, by_row, info_of, info_of_end, obs_of
from sb3compat.conformance.values import Value
from sb3compat.conformance.variants import (
    other_actions_in_the_first_row,
    other_actions_in_the_last_row,
)

# So many steps in which rows end together, and one of them alone tells something, are no chance.
_TOGETHER = 3
_NOTHING = (None, "", 0.0)


def infos_of_their_own_row(record: Record) -> Iterator[Demand]:
    """The infos of a row are the same whether other rows end or not."""
    if record.num_envs < 2:
        raise NotExercisedError("there is one row")
    yield from _infos_beside_ends(record)
    yield from _infos_of_ends_together(record)


def _infos_beside_ends(record: Record) -> Iterator[Demand]:
    """Where another row ends, a row that goes on has the infos that it has in all other steps."""
    for i, found in enumerate(by_row(record)):
        steps = [step for e in found for step in e.before_end]
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


def _infos_of_ends_together(record: Record) -> Iterator[Demand]:
    """Where rows end in one step, each has the infos that it has where it ends alone."""
    over = [e for found in by_row(record) for e in found if e.over]
    alone = [_told(info_of_end(record, e)) for e in over if e.end.ended == [e.row]]
    together: dict[tuple[int, bool], list[Episode]] = {}
    for episode in over:
        # What truncations tell may be something else.
        together.setdefault((episode.end.number, episode.cut), []).append(episode)
    groups = [group for group in together.values() if len(group) > 1]
    if len(alone) < FEWEST or len(groups) < _TOGETHER:
        return
    for key in sorted(set.intersection(*alone), key=str):
        with_it = [[key in _told(info_of_end(record, e)) for e in group] for group in groups]
        if all(sum(has) == 1 for has in with_it):
            lost = groups[-1][with_it[-1].index(False)]
            yield expect(
                f"{{0}}.get({key!r}) not in {_NOTHING}",
                info_of_end(record, lost),
                what=f"{{0}}.get({key!r})",
                should=f"something for {key!r}, as where a row ends alone: of rows that end in one "
                "step, only one has it",
                row=lost.row,
            )


def _told(info: Value) -> set[str]:
    """The keys of an info that have a value, other than what arrays have where nothing is set."""
    return {
        key
        for key, value in info.value.items()
        if not (value is None or (isinstance(value, str | float) and value in _NOTHING))
    }


def dicts_of_their_own(record: Record) -> Iterator[Demand]:
    """No row shows the last row's dict in its infos: one object into which all rows have written.

    Such a dict is equal in all rows. Several of its entries change with the actions of the last
    row, and none with those of the first one. (A single entry may be the best of all rows.)
    """
    keys = _alike_in_all_rows(record)
    if not keys:
        raise NotExercisedError("the rows have no infos in common that change")
    own = twin_of(record, other_actions_in_the_first_row)
    other = twin_of(record, other_actions_in_the_last_row)
    if _obs_changed(record, own) < FEWEST or _obs_changed(record, other):
        raise NotExercisedError("the actions of one row do not change it alone")
    record.judged = True
    for key in keys:
        pairs = _dicts(record, other, key)
        changed = {k for a, b in pairs for k in a.value if not equal(a.value[k], b.value.get(k))}
        if len(changed) > 1 and all(equal(a.value, b.value) for a, b in _dicts(record, own, key)):
            got, expected = next((a, b) for a, b in pairs if not equal(a.value, b.value))
            should = f"as it was with other actions in row {record.num_envs - 1}: those of row 0 "
            should += "change nothing in it"
            yield expect("equal({0}, {1})", got, expected, should=should, row=0)


def _alike_in_all_rows(record: Record) -> list[str]:
    """The keys of dicts that are equal in all rows in each step, and change."""
    infos = [[info_of(record, step, i).value for i in record.rows] for step in record.steps]
    shared = set.intersection(*(set(info) for row in infos for info in row)) if infos else set()
    found = []
    for key in sorted(shared, key=str):
        rows = [[info[key] for info in row] for row in infos]
        alike = all(isinstance(row[0], dict) and equal(one, row[0]) for row in rows for one in row)
        if alike and distinct([row[0] for row in rows]) >= FEWEST:
            found.append(key)
    return found


def _dicts(record: Record, twin: Record, key: str) -> list[tuple[Value, Value]]:
    """The dicts of the first row in the twin's steps, and in those of the record.

    The twin may have none where its other actions lead to an end.
    """
    pairs = [
        (info_of(twin, a, 0).get(key, None), info_of(record, b, 0)[key])
        for a, b in zip(twin.steps, record.steps, strict=False)
    ]
    return [(a, b) for a, b in pairs if isinstance(a.value, dict)]


def _obs_changed(record: Record, twin: Record) -> int:
    """The number of steps in which the first row has other observations in the twin."""
    pairs = zip(twin.steps, record.steps, strict=False)
    return sum(not equal(obs_of(twin, a, 0).value, obs_of(record, b, 0).value) for a, b in pairs)
