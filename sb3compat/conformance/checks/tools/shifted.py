"""Two instances under a seed and the next: row i of the one is row i - 1 of the other.

Where rows differ by their seeds only, the two rows do the same for the same actions. Rows may
differ by design: in their time limits, for example. So a row is judged at the end of an episode
only if it has done all the same until there. A first observation that differs must also be one that
no reset gave: rows that share the generator of their resets draw others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from sb3compat.conformance.checks.tools.evidence import moves_of
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect, twin_of
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Call, Record
from sb3compat.conformance.rows import Episode, by_row, obs_of
from sb3compat.conformance.values import Several, Value
from sb3compat.conformance.variants import action_of, shifted_by_a_row

# So many steps, so that chance is no explanation.
_FEWEST = 4

distinct, equal, pieces = (PRELUDE[name] for name in ("distinct", "equal", "pieces"))
Pair: TypeAlias = tuple[object, object]


@dataclass(frozen=True)
class Counterparts:
    """An end of an episode up to which a row has done the same as its counterpart.

    Attributes:
        ended: The episode of the row.
        other: That of its counterpart, the row before in the other instance.
        after: The episodes that follow without a reset of all rows, or None.
    """

    ended: Episode
    other: Episode
    after: tuple[Episode, Episode] | None

    @property
    def several(self) -> bool:
        """Whether other rows ended in the same step, here or there."""
        return max(len(self.ended.end.ended), len(self.other.end.ended)) > 1


def rows_are_alike(record: Record) -> Iterator[Demand]:
    """Row i under seed s does as row i - 1 under seed s + 1, for the same actions.

    A seed s gives row i the seed s + i, so that both have the same one. Typical mistakes: the last
    row is never stepped, as in `range(n - 1)`; rewards are dealt to the rows in reverse; the last
    observation of an episode is that of another row. Rows may differ by design: they are judged
    where they have done the same up to the end of an episode. If that is chance, declare the
    capability `alike_rows` as missing.
    """
    twin = _twin_of(record)
    yield from _own_rewards(record, twin)
    found = [each for i in record.rows[1:] for each in _ends(record, twin, i)]
    for each in found:
        if not each.several:  # those have a check of their own
            yield from _judged(each)
    yield from _movement(record, twin)
    record.judged = bool(found) or not record.subject.endings
    raise NotExercisedError("no episode of a row ended as that of the same row elsewhere did")


def endings_together(record: Record) -> Iterator[Demand]:
    """If several episodes end in one step, each row is reset, and has its own last observation.

    Typical mistakes: only the first of these rows is reset; all of them get the first observation
    of one reset; their last observations are swapped, as they are stored in the order of the ends.
    A row is compared with the one before it under the next seed, which has the same seed.
    """
    twin = _twin_of(record)
    ends = [each for i in record.rows[1:] for each in _ends(record, twin, i) if each.several]
    if not ends:
        raise NotExercisedError("no two episodes ended in one step")
    for each in ends:
        yield from _judged(each)


def _twin_of(record: Record) -> Record:
    if record.num_envs < 2:
        raise NotExercisedError("there is one row only")
    return twin_of(record, shifted_by_a_row)


def _ends(record: Record, twin: Record, i: int) -> Iterator[Counterparts]:
    """The ends of episodes of a row, as long as it does what its counterpart does."""
    pairs = list(zip(by_row(record)[i], by_row(twin)[i - 1], strict=False))
    # The last observation may differ by design as that of any step: what differs in it must have
    # moved and agreed before. Where all episodes have one step, one of another row must agree.
    at_once = _agree_at_once(record, twin)
    agreed: list[Pair] = []
    for k, (mine, other) in enumerate(pairs):
        if not _alike(mine, other):
            return
        agreed += _moves(mine)
        if mine.over and (at_once or (agreed and _has_moved(agreed, mine, other))):
            after = pairs[k + 1] if k + 1 < len(pairs) else None
            yield Counterparts(mine, other, after if after and after[0].by != "reset" else None)


def _moves(episode: Episode) -> list[Pair]:
    """The first observation of an episode with each one that follows, without the last."""
    first, *later = episode.seen[:-1] if episode.over else episode.seen
    return [(first.value, obs.value) for obs in later]


def _has_moved(agreed: list[Pair], mine: Episode, other: Episode) -> bool:
    """Whether all that differs in two last observations has moved in steps that agree.

    What only the ends of episodes change need not have moved.
    """
    lasts = mine.last.value, other.last.value
    if equal(*lasts):
        return True
    others = [pair for row in by_row(mine.record) for each in row for pair in _moves(each)]
    seen = [obs for pair in (lasts, *agreed, *others) for obs in pair]
    if len({tuple(piece.shape for piece in pieces(obs)) for obs in seen}) > 1:
        return True  # those of sequences
    wrong, known, ever = (_different(pairs) for pairs in ([lasts], agreed, others))
    return all((~w | k | ~e).all() for w, k, e in zip(wrong, known, ever, strict=True))


def _different(pairs: list[Pair]) -> list[np.ndarray[Any, Any]]:
    """Where the values of some pair differ, by the parts of an observation."""
    found = [[a != b for a, b in zip(*map(pieces, pair), strict=True)] for pair in pairs]
    return [np.any(part, axis=0) for part in zip(*found, strict=True)]


def _agree_at_once(record: Record, twin: Record) -> bool:
    """Whether all episodes have one step, and some row ends one as its counterpart does."""
    over = [episode for row in by_row(record) for episode in row if episode.over]
    if any(len(episode.steps) > 1 for episode in over):
        return False
    rows = zip(by_row(record)[1:], by_row(twin), strict=False)
    firsts = [(row[0], counterpart[0]) for row, counterpart in rows if row and counterpart]
    return any(
        _alike(mine, other) and mine.over and equal(mine.last.value, other.last.value)
        for mine, other in firsts
    )


def _alike(mine: Episode, other: Episode) -> bool:
    """Whether two episodes are, save for their last observations."""
    if (len(mine.steps), mine.over) != (len(other.steps), other.over):
        return False
    till = -1 if mine.over else None
    pairs = zip(mine.seen[:till], other.seen[:till], strict=True)
    return all(equal(a.value, b.value) for a, b in pairs)


def _judged(each: Counterparts) -> Iterator[Demand]:
    """The last observation is that of the counterpart, and so is the first one that follows."""
    yield _same("equal({0}, {1})", each.ended, each.ended.last, each.other.last)
    if each.after is None:
        return
    mine, other = each.after
    if equal(mine.first.value, other.first.value):
        return
    # What no reset gave: the last observation, or the first one of another row.
    record, i = mine.record, mine.row
    others = [obs_of(record, mine.start, j) for j in record.rows if j != i]
    for wrong in (each.ended.last, *others):
        if equal(wrong.value, mine.first.value):
            condition = "equal({0}, {1}) or not equal({0}, {2})"
            yield _same(condition, mine, mine.first, other.first, wrong)


def _same(condition: str, mine: Episode, got: Value, expected: Value, *more: Value) -> Demand:
    should = f"as in row {mine.row - 1} of another instance, under the same seed and actions"
    return expect(condition, got, expected, *more, should=should, row=mine.row, like=expected)


def _movement(record: Record, twin: Record) -> Iterator[Demand]:
    """No row stands still for ever, whatever its actions, where its counterpart moves."""
    for i in record.rows[1:]:
        for of, j, other, k in ((record, i, twin, i - 1), (twin, i - 1, record, i)):
            seen = [obs_of(of, call, j) for call in of.batches]
            if any(not equal(one.value, seen[0].value) for one in seen):
                continue
            moved = [pair for episode in by_row(other)[k] for pair in moves_of(episode)]
            if sum(not equal(before.value, after.value) for before, after in moved) < _FEWEST:
                continue
            # One action may move it nowhere by design, and an end takes it back to the start.
            steps = [step for step in of.steps if "actions" in step.copies and j not in step.ended]
            known = [step.copies["actions"] for step in steps]
            if distinct([action_of(of, actions, j) for actions in known]) < 2:
                continue
            should = f"another than in the beginning: {_COUNTERPART} has moved"
            yield expect("distinct({0}) > 1", Several(seen), what="{0}[-1]", should=should, row=j)


def _own_rewards(record: Record, twin: Record) -> Iterator[Demand]:
    """The rewards of a row are not those of another one, in each step so far."""
    steps = list(_before_differences(record, twin))
    if len(steps) < _FEWEST:
        return
    here, there = (np.array([np.ravel(s[k].copies["rewards"]) for s in steps]).T for k in (0, 1))
    if any(len(np.unique(side, axis=0)) < record.num_envs for side in (here, there)):
        return
    mine, other = steps[-1]
    for i in record.rows[1:]:
        dealt = (there == here[i]).all(axis=1)
        if dealt.any() and not dealt[i - 1] and len(np.unique(here[i])) > 1:
            got, own = mine.rewards[i], other.rewards[i - 1]
            should = f"{short(own.value)}, as in {_COUNTERPART}"
            yield expect("equal({0}, {1})", got, own, should=should, row=i)


def _before_differences(record: Record, twin: Record) -> Iterator[tuple[Call, Call]]:
    """The steps without an end, as long as all rows do as their counterparts."""
    for mine, other in zip(record.steps, twin.steps, strict=False):
        if mine.flags.any() or other.flags.any():
            continue
        pairs = ((obs_of(record, mine, i), obs_of(twin, other, i - 1)) for i in record.rows[1:])
        if not all(equal(a.value, b.value) for a, b in pairs):
            return
        yield mine, other


_COUNTERPART = "its counterpart in another instance, under the same seed and actions,"
