"""What an environment keeps over the end of an episode, and later steps show."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sb3compat.conformance.checks.tools.comparing import (
    episodes_after,
    results,
    way_under_own_seeds,
    whole_twin_of,
)
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Call, Record
from sb3compat.conformance.rows import Episode, obs_of
from sb3compat.conformance.subject.traits import floats
from sb3compat.conformance.values import Value
from sb3compat.conformance.variants import reset_and_on_before_the_end, reset_and_on_midway

# So many steps after an end are compared.
_STEPS = 3

close, equal = PRELUDE["close"], PRELUDE["equal"]


def nothing_kept_over_ends(record: Record) -> Iterator[Demand]:
    """After an end, the next episode continues like an episode after `reset()`.

    Typical mistake: the reset within a step sets back the state that is observed, but not all that
    rewards are computed from, such as the potential or the action of the step before. What an
    environment keeps by design, such as a curriculum, counts as well: declare the capability
    `repeatable` as missing then. It can be told where steps draw no random numbers.
    """
    # A `reset()` in the place of the last step leads to the same start where steps draw no random
    # numbers. Where they do, or it counts how many steps there were before, a reset midway leads to
    # something else, too: then nothing can be told. (A step earlier, most of the numbers that a
    # reset draws may be the same.)
    way = way_under_own_seeds(record)
    if len(way) < _STEPS:
        raise NotExercisedError("the episode is too short")
    twin = whole_twin_of(record, reset_and_on_before_the_end)
    earlier = whole_twin_of(record, reset_and_on_midway)
    for after in episodes_after(record, way[-1]):
        i = after.row
        if not after.steps or not _begin_alike(record, after, twin, earlier):
            continue
        record.judged = True
        for one, other in zip(after.steps[:_STEPS], _later(twin), strict=False):
            for got, expected in _shown(record, one, twin, other, i):
                should = "as after reset(), from the same start and with the same actions"
                yield expect("close({0}, {1})", got, expected, should=should, row=i, like=expected)
            if i in one.ended:
                break
    raise NotExercisedError("no step follows an end, or steps draw random numbers")


def _begin_alike(record: Record, after: Episode, twin: Record, earlier: Record) -> bool:
    """Whether the episode begins with what both twins have drawn, and these go on alike."""
    i = after.row
    first = after.first.value
    # Fractions that are drawn anew are rarely equal by chance, in all rows.
    if not np.modf(floats(first))[0].any() or equal(
        first, obs_of(record, record.resets[0], i).value
    ):
        return False
    if not equal(first, obs_of(twin, twin.resets[-1], i).value):
        return False
    if not equal(twin.resets[-1].obs.value, earlier.resets[-1].obs.value):
        return False
    pairs = list(zip(_later(twin), _later(earlier), strict=False))[:_STEPS]
    shown = [pair for one, other in pairs for pair in _shown(twin, one, earlier, other, i)]
    return bool(shown) and all(close(a.value, b.value) for a, b in shown)


def _later(twin: Record) -> list[Call]:
    """The steps after the reset in the place of the end."""
    return [step for step in twin.steps if step.number > twin.resets[-1].number]


def _shown(
    record: Record, one: Call, twin: Record, other: Call, i: int
) -> Iterator[tuple[Value, Value]]:
    """What two steps show of a row: rewards, flags, and the observations unless it ended."""
    for a, b in results(one, other):
        yield a[i], b[i]
    if i not in one.ended and i not in other.ended:
        yield obs_of(record, one, i), obs_of(twin, other, i)
