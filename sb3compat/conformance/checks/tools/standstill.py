"""Rows that stand still in some steps, where other steps move them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from sb3compat.conformance.checks.tools.evidence import (
    FEWEST,
    STEPS,
    apart,
    by_chance,
    bytes_of,
    distinct,
    equal,
    moves_of,
    not_all_alike,
    values,
)
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Call, Record
from sb3compat.conformance.rows import Episode, by_row, episodes
from sb3compat.conformance.values import Value
from sb3compat.conformance.variants import action_of

# Of the mean distance between two observations; steps that lead anywhere are as far.
_NEAR = 0.7

numbers_in = PRELUDE["numbers_in"]


def still(moves: Sequence[tuple[Value, Value]]) -> list[bool]:
    """Whether each of the steps moved nothing."""
    return [equal(before.value, after.value) for before, after in moves]


def lasts_moved_on(record: Record) -> Iterator[Demand]:
    """Truncated episodes do not all end where they were a step before, if other steps move.

    Steps after one that moved nothing do not count: where a row stands at a wall, and goes on with
    the same action, it stays there.

    Nor do truncated episodes whose last steps are rewarded otherwise than others, all in the same
    way: there the time may have been up before the action was taken. And where each step leads to
    something else altogether, as to the next question, the last one may just answer it.
    """
    for i, found in enumerate(by_row(record)):
        stood = [still(moves_of(episode)) for episode in found]
        after = [now for one in stood for before, now in pairwise(one) if not before]
        cuts = [
            episode
            for episode, one in zip(found, stood, strict=True)
            if episode.cut and not any(one[-1:])
        ]
        befores, lasts = [e.seen[-2] for e in cuts], [e.last for e in cuts]
        if len(after) < STEPS or distinct(values(lasts)) < FEWEST:
            continue
        if by_chance(sum(after), len(after), distinct(values(lasts))):
            continue
        if _rewarded_apart(found, cuts) or not _are_near(found):
            continue
        should = "the observation after the last action, not the one before it at all ends"
        yield not_all_alike(befores, lasts, should, i, lasts[-1])
    raise NotExercisedError("too few episodes were truncated, or steps move nothing")


def _are_near(found: Sequence[Episode]) -> bool:
    """Whether observations are nearer to the one before than to others."""
    seen = [[numbers_in(obs) for obs in values(some)] for some in apart(moves_of(*found))]
    if len({obs.size for some in seen for obs in some}) > 1:
        return False
    before, after = map(np.array, seen)
    others = np.roll(after, len(after) // 2, axis=0)
    scale = after.std(axis=0)
    varied = scale > 0
    steps, any_two = (
        np.sum(np.abs(before - some)[:, varied] / scale[varied]) for some in (after, others)
    )
    return bool(steps < _NEAR * any_two)


def _rewarded_apart(found: Sequence[Episode], cuts: Sequence[Episode]) -> bool:
    """Whether the last steps of these episodes have one reward that other steps rarely have."""
    there = [_reward(episode.end, episode.row) for episode in cuts]
    others = [_reward(step, e.row) for e in found for step in e.before_end]
    often = sum(equal(reward, there[0]) for reward in others)
    return distinct(there) == 1 and not by_chance(often, len(others), len(cuts))


def _reward(step: Call, i: int) -> Any:
    """The reward of row i, in an array: an empty one if there is none, which a check reports."""
    return np.ravel(step.copies["rewards"])[i : i + 1]


def no_standstill_after_ends(record: Record) -> Iterator[Demand]:
    """A row does not stand still in each step after an end of its own, if it does so rarely else.

    It must never do so after a reset: the first action may take effect late by design.
    """
    first = {(e.row, e.steps[0].number): e.by for e in episodes(record) if e.steps}
    after = {place for place, by in first.items() if by != "reset"}
    should = "another than before, as the row was stepped: other steps move it"
    yield from _no_standstill(record, after, should, first.keys() - after)


def no_standstill_beside_resets(record: Record) -> Iterator[Demand]:
    """A row does not stand still in each step in which another one resets itself.

    In DISABLED mode, where rows do not do so, it is the step in which another one ends.
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
    """
    for i, found in enumerate(by_row(record)):
        # Not those after a step that moved nothing: at a wall a row may stay as long as it likes.
        steps = [
            (step.number, pair)
            for episode in found
            for step, pair, stood in zip(
                episode.steps,
                moves_of(episode),
                (False, *still(moves_of(episode))),
                strict=False,
            )
            if not stood
        ]
        mine = [pair for number, pair in steps if (i, number) in asked]
        rest = [pair for number, pair in steps if (i, number) not in asked]
        if any((i, n) in never and equal(a.value, b.value) for n, (a, b) in steps):
            continue
        ways = _ways(record, i)
        times = len({ways[number] for number, _ in steps if (i, number) in asked})
        if len(rest) < STEPS or by_chance(sum(still(rest)), len(rest), times):
            continue
        befores, afters = apart(mine)
        yield not_all_alike(afters, befores, should, i)
    raise NotExercisedError("too few episodes ended, or rows stand still in other steps, too")


def _ways(record: Record, i: int) -> dict[int, int]:
    """What tells the actions of row i up to a call: if they are taken again, that counts once."""
    found: dict[int, int] = {}
    way = 0
    for call in record.batches:
        if call.is_step and "actions" in call.copies:
            way = hash((way, bytes_of(action_of(record, call.copies["actions"], i))))
        elif call.mask is None:
            way = 0
        found[call.number] = way
    return found
