"""Last observations that are those of a reset, at a few ends among many."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

import numpy as np

from sb3compat.conformance.checks.tools.comparing import whole_twin_of
from sb3compat.conformance.checks.tools.evidence import STEPS
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Op, Record
from sb3compat.conformance.rows import Episode, by_row, last_of, obs_of
from sb3compat.conformance.variants import made_again

equal, numbers_in = PRELUDE["equal"], PRELUDE["numbers_in"]


def strays_are_no_starts(record: Record) -> Iterator[Demand]:
    """A last observation that lies among the first ones is not that of a reset in its place.

    A row whose episode ends in two ways at once may be reset twice, and what is taken for the last
    observation then is the first one of an episode that nobody sees.
    """
    stray = _stray(record)
    if stray is None:
        raise NotExercisedError("no last observation lies among the first ones")
    end, i = stray.end, stray.row
    twin = whole_twin_of(record, reset_before_a_stray_end)
    last, known = last_of(record, end, i), obs_of(twin, twin.resets[-1], i)
    yield expect(
        "not equal({0}, {1})",
        last,
        known,
        should="the last observation, not that of a reset in the place of the last step",
        row=i,
    )


def reset_before_a_stray_end(record: Record, twin: Record) -> Iterator[Op]:
    """All calls before the end of a stray, and a reset in its place."""
    stray = _stray(record)
    assert stray is not None
    end = stray.end
    for call in takewhile(lambda call: call is not end, record.calls):
        yield from made_again([call]) if call.is_step else [call.op]
    yield Op("reset")


def _stray(record: Record) -> Episode | None:
    """The first episode of few that ends among the starts, and comes from elsewhere.

    Starts are drawn: no two are alike in all their numbers. Rows draw from generators of their own.
    """
    known = record.subject.capabilities
    if not (known.get("own_generators") or record.num_envs == 1):
        return None
    rows = by_row(record)
    for found in [[e for row in rows for e in row]] if known.get("alike_rows") else rows:
        over = [e for e in found if e.over]
        starts = [numbers_in(e.first.value, "f") for e in found]
        lasts = [numbers_in(e.last.value, "f") for e in over]
        before = [numbers_in(e.seen[-2].value, "f") for e in over]
        if len(starts) < STEPS or len({len(n) for n in (*starts, *lasts, *before)}) > 1:
            continue
        low, high = np.min(starts, axis=0), np.max(starts, axis=0)
        drawn = (np.unique(starts, axis=0).shape[0] == len(starts)) & (low < high)
        inside, outside = (
            [((low <= n) & (n <= high))[drawn] for n in some] for some in (lasts, before)
        )
        strays = [
            e for e, n, b in zip(over, inside, outside, strict=True) if n.size and n.all() > b.all()
        ]
        if strays and 2 * len(strays) < len(over):
            return strays[0]
    return None
