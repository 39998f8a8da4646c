"""The last observations of episodes come about as all others do, by those of many episodes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from sb3compat.conformance.checks.tools.comparing import same
from sb3compat.conformance.checks.tools.evidence import (
    CHANCE,
    FEWEST,
    STEPS,
    Pairs,
    apart,
    broken_off,
    bytes_of,
    distinct,
    equal,
    followed,
    moves_of,
    not_all_alike,
    values,
)
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Call, Record
from sb3compat.conformance.rows import Episode, by_row, obs_of
from sb3compat.conformance.subject.traits import floats
from sb3compat.conformance.values import Several, Value
from sb3compat.conformance.variants import action_of

# That so many truncations all lead from different places to one place, or to another scale, is no
# chance.
_CUTS = 8
# So many different ones show that something varies.
_VARIED = 3

ahead, pieces, pushed, rescaled = map(
    PRELUDE.__getitem__, ("ahead", "pieces", "pushed", "rescaled")
)


def last_like_steps(record: Record) -> Iterator[Demand]:
    """The last observations of episodes come about as all other observations do."""
    for i, found in enumerate(by_row(record)):
        yield from _not_the_next_first(found, i)
        yield from _not_of_another_row(record, found, i)
        yield from _in_known_order(found, i)
        yield from _pushed_on(found, i)
        moves = moves_of(*found)
        # With a reference, another check knows exactly what the last observations are.
        if not record.subject.referenced:
            # Code that handles truncations apart may forget terminations.
            for some in ([e for e in found if e.over], [e for e in found if e.over and not e.cut]):
                yield from _on_one_scale(some, moves, i, outside=True)
            yield from _not_of_the_next_episode(found, moves, i)
        cuts = [episode for episode in found if episode.cut]
        if len(cuts) < FEWEST:
            continue
        record.judged = True
        yield from _no_one_place(found, cuts, moves, i)
        yield from _on_one_scale(cuts, moves, i)
    raise NotExercisedError("too few episodes were truncated")


def _no_one_place(
    found: list[Episode], cuts: list[Episode], moves: list[tuple[Value, Value]], i: int
) -> Iterator[Demand]:
    """Truncated episodes, from wherever, do not all end with zeros that are seen nowhere else.

    A world may lead to one place when the time is up. It is another one, or is met elsewhere, too.
    """
    lasts = [episode.last for episode in cuts]
    befores = [episode.seen[-2].value for episode in cuts]
    known = values(lasts)
    if min(len(known), len(moves)) < _CUTS or distinct(known) > 1 or distinct(befores) < FEWEST:
        return
    parts = pieces(known[0])
    if any(piece.dtype.kind not in "biufc" or piece.any() for piece in parts):
        return
    if not any(piece.ndim for piece in parts):  # a state with the number 0 is one like others
        return
    places = [*(e.first.value for e in found), *(after.value for _, after in moves)]
    if not any(equal(known[0], place) for place in places):
        should = f"the observation after the last action, not zeros at {len(known)} ends"
        yield expect(
            "distinct({0}) > 1", Several(lasts), lasts[-1], what="{1}", should=should, row=i
        )


def lasts_unlike_starts(record: Record) -> Iterator[Demand]:
    """Last observations are not the next first ones, where these look like those after resets."""
    yield from _ends_unlike_starts(record, "last")


def starts_unlike_lasts(record: Record) -> Iterator[Demand]:
    """First observations are not the last ones before, where they lie beyond those after resets."""
    yield from _ends_unlike_starts(record, "first")


def _ends_unlike_starts(record: Record, accused: str) -> Iterator[Demand]:
    for i, found in enumerate(by_row(record)):
        record.judged |= len(followed(found)) >= FEWEST
        for kind, pairs in _alike_by_no_chance(found):
            if _look_first(found, [after.first.value for _, after in pairs]) == (accused == "last"):
                yield _not_all_alike(pairs, kind, accused, i)
    raise NotExercisedError("too few episodes ended")


def _not_the_next_first(found: list[Episode], i: int) -> Iterator[Demand]:
    """Last observations are not the first ones of the next episodes, whichever of both is wrong."""
    for kind, pairs in _alike_by_no_chance(found):
        yield _not_all_alike(pairs, kind, "last", i, ", or the first ones are wrong")


def _not_all_alike(pairs: Pairs, kind: str, accused: str, i: int, more: str = "") -> Demand:
    first, last = "the first observation of the next episode", "the last one of the episode"
    should = {
        "last": f"{last}; at every {kind}, it equals {first}{more}",
        "first": f"{first}; at every {kind}, it equals {last} before",
    }
    lasts, firsts = [before.last for before, _ in pairs], [after.first for _, after in pairs]
    shown = (lasts if accused == "last" else firsts)[-1]
    return not_all_alike(lasts, firsts, should[accused], i, shown)


def _alike_by_no_chance(found: list[Episode]) -> Iterator[tuple[str, Pairs]]:
    """The kinds of ends at which all last observations are the next first ones, and must not be."""
    pairs = followed(found)
    kinds = {
        "end": pairs,
        # Code that handles truncations apart from terminations may be wrong in one of both.
        "truncation": [(a, b) for a, b in pairs if a.cut],
        "termination": [(a, b) for a, b in pairs if not a.cut],
    }
    for kind, some in kinds.items():
        if (kind == "end" or len(some) < len(pairs)) and _all_alike_by_no_chance(found, some):
            yield kind, some


def _all_alike_by_no_chance(found: list[Episode], pairs: Pairs) -> bool:
    """Whether all last observations are the first ones of the next episodes, and must not be.

    That is so by design where nothing is moved by a reset, and by chance where all episodes begin
    in one place: then truncations count only, from different places and with that place seen rarely
    otherwise, and where nothing but truncations ends an episode.
    """
    known = [(a.last.value, b.first.value) for a, b in pairs]
    if len(pairs) < FEWEST or not all(equal(last, first) for last, first in known):
        return False
    moves = moves_of(*found)
    starts = [first for _, first in known]
    there = sum(equal(after.value, start) for _, after in moves for start in starts[:FEWEST])
    if ((there / FEWEST + 1) / (len(moves) + 2)) ** len(pairs) >= CHANCE:
        return False
    if distinct(starts) >= _VARIED:
        # A seed may move what a reset without one leaves where it is.
        moved = [not equal(a.seen[-1].value, b.first.value) for a, b in broken_off(found)]
        return sum(moved) >= _VARIED
    befores = [a.seen[-2].value for a, _ in pairs]
    return all(e.cut for e in found if e.over) and distinct(befores) >= _VARIED


def _look_first(found: list[Episode], firsts: list[object]) -> bool | None:
    """Whether all lie in the range of observations after resets; None if that says nothing."""
    known = [floats(episode.first.value) for episode in found if episode.by == "reset"]
    if len(known) < FEWEST or not known[0].size:
        return None
    low, high = np.min(known, axis=0), np.max(known, axis=0)
    margin = (high - low) / 2
    values = [floats(first) for first in firsts]
    return all(bool(((v >= low - margin) & (v <= high + margin)).all()) for v in values)


def _not_of_another_row(record: Record, found: list[Episode], i: int) -> Iterator[Demand]:
    """Last observations are not those of rows that go on, where no two rows have one elsewhere."""

    def others(step: Call) -> Iterator[Value]:
        return (obs_of(record, step, k) for k in record.running(step) if k != i)

    pairs = [
        (episode.last, theirs)
        for episode in found
        if episode.over
        for theirs in others(episode.end)
        if equal(episode.last.value, theirs.value)
    ]
    lasts = [last for last, _ in pairs]
    if distinct(values(lasts)) < _VARIED:
        return
    elsewhere = [
        equal(obs_of(record, step, i).value, theirs.value)
        for step in record.steps
        if i not in step.ended
        for theirs in others(step)
    ]
    if len(elsewhere) >= STEPS and not any(elsewhere):
        should = f"that of row {i}; at {len(pairs)} ends, it is the observation of another row"
        yield not_all_alike(lasts, [theirs for _, theirs in pairs], should, i, lasts[-1])


def _in_known_order(found: list[Episode], i: int) -> Iterator[Demand]:
    """Last observations do not have the entries of what other steps lead to in another order.

    Where one action leads from one observation to one other, it does so in the last step, too. An
    end may be shown by other entries; it may lead to a place that is seen elsewhere, as well.
    """
    after: dict[tuple[bytes, bytes], Value] = {}
    ends: dict[bool, list[tuple[tuple[bytes, bytes], Value]]] = {True: [], False: []}
    repeated = 0
    for episode in found:
        moves = list(_moves_by_action(episode))
        if episode.over:
            ends[episode.cut].append(moves.pop())
        for way, then in moves:
            repeated += way in after
            if not equal(after.setdefault(way, then).value, then.value):
                return
    if repeated < STEPS:
        return
    seen = {before for before, _ in after} | {bytes_of(then.value) for then in after.values()}
    for some in ends.values():
        known = [(last, after[way]) for way, last in some if way in after]
        lasts = [last.value for last, _ in known]
        if (
            len(known) >= _CUTS
            and seen.isdisjoint(map(bytes_of, lasts))
            and all(_reordered(last.value, expected.value) for last, expected in known)
            and distinct(lasts) >= FEWEST
        ):
            last, expected = known[-1]
            should = "as after the same observation and action in other steps, in the same order"
            yield same(last, expected, should, i)


def _moves_by_action(episode: Episode) -> Iterator[tuple[tuple[bytes, bytes], Value]]:
    """For each step the observation before it with the action, and the observation after it."""
    for step, (before, after) in zip(episode.steps, pairwise(episode.seen), strict=True):
        action = action_of(episode.record, step.copies["actions"], episode.row)
        yield (bytes_of(before.value), bytes_of(action)), after


def _reordered(one: Any, other: Any) -> bool:
    """Whether two observations have the same entries, in another order.

    Not if they differ in zeros and ones only: which entry is a one may name the end.
    """
    parts = list(zip(pieces(one), pieces(other), strict=False))
    if not all(equal(np.sort(a), np.sort(b)) for a, b in parts):
        return False
    return not all(np.isin(a[a != b], (0, 1)).all() for a, b in parts)


def _pushed_on(found: list[Episode], i: int) -> Iterator[Demand]:
    """A last observation is a stack of frames as all others are: the one before, moved on."""
    before, after = apart(moves_of(*found))
    over = [episode for episode in found if episode.over and len(episode.steps) > 1]
    if len(before) < STEPS or len(over) < FEWEST:
        return
    stack = _stack(values(before), values(after))
    if stack is None:
        return
    wrong = [e for e in over if not pushed([e.seen[-2].value], [e.last.value], *stack)]
    if len(wrong) < len(over):
        wrong = _with_old_frames(found, wrong, *stack)
    if wrong:
        axis, count = stack
        yield expect(
            f"pushed([{{1}}], [{{0}}], {axis}, {count})",
            wrong[-1].last,
            wrong[-1].seen[-2],
            should="the frames before the last action, moved on by one, as after all other steps",
            row=i,
        )


def _with_old_frames(
    found: list[Episode], wrong: list[Episode], axis: int, count: int
) -> list[Episode]:
    """The episodes whose last observation has frames of the episode before.

    One picture may end all episodes of some kind, so these frames have to differ.
    """

    def frames(obs: Value) -> dict[bytes, Any]:
        along = np.moveaxis(np.asarray(obs.value), axis, 0)
        some = along.reshape(-1, count, *along.shape[1:])
        return {frame.tobytes(): frame for frame in some if frame.any()}

    kept = [
        (e, frames(e.last).keys() & frames(before.last).keys() - frames(e.seen[-2]).keys())
        for before, e in pairwise(found)
        if before.over and any(e is each for each in wrong)
    ]
    old = set().union(*(frames for _, frames in kept))
    return [episode for episode, frames in kept if frames] if len(old) >= _VARIED else []


def _stack(before: list[Any], after: list[Any]) -> tuple[int, int] | None:
    """The axis of a stack of frames, and the size of a frame along it; None if there is none."""
    first = before[0]
    if not isinstance(first, np.ndarray) or not first.ndim or distinct(after[:STEPS]) < STEPS / 2:
        return None
    for axis in {0, first.ndim - 1}:
        for frames in range(2, 9):
            count, rest = divmod(first.shape[axis], frames)
            if count and not rest and pushed(before, after, axis, count):
                return axis, count
    return None


def _on_one_scale(
    ends: list[Episode], moves: list[tuple[Value, Value]], i: int, *, outside: bool = False
) -> Iterator[Demand]:
    """Ends do not lead to another scale, as that of an observation before processing.

    A truncation is a step like others. A termination may lead to a place far away; but it does not
    multiply all entries.
    """
    lasts, befores = [episode.last for episode in ends], [episode.seen[-2] for episode in ends]
    if len(moves) < STEPS or len(ends) < _CUTS:
        return
    before, after = apart(moves)
    if not rescaled(*map(values, (before, after, befores, lasts)), outside):
        return
    yield expect(
        f"not rescaled({{0}}, {{1}}, {{2}}, {{3}}{', True' if outside else ''})",
        Several(before),
        Several(after),
        Several(befores),
        Several(lasts),
        lasts[-1],
        what="{4}",
        should=f"on the scale of {short(befores[-1].value, 80)}, the one before it",
        row=i,
    )


def _not_of_the_next_episode(
    found: list[Episode], moves: list[tuple[Value, Value]], i: int
) -> Iterator[Demand]:
    """A truncation does not set an entry that no other step changes to its next value."""
    pairs = [(a, b) for a, b in followed(found) if a.cut]
    if len(moves) < STEPS or len(pairs) < FEWEST:
        return
    befores, lasts = [a.seen[-2] for a, _ in pairs], [a.last for a, _ in pairs]
    firsts = [b.first for _, b in pairs]
    # What a reset leaves as it is, such as a day or a level, may change at an end.
    left, begun = apart([(a.seen[-1], b.first) for a, b in broken_off(found)])
    every = (*apart(moves), befores, lasts, firsts, left, begun)
    if left and ahead(*map(values, every)):
        should = "of this episode: an entry that no other step changes is that of the next episode"
        condition = "not ahead({0}, {1}, {2}, {3}, {4}, {5}, {6})"
        shown = lasts[-1]
        yield expect(condition, *map(Several, every), shown, what="{7}", should=should, row=i)
