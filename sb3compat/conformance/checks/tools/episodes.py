"""Many episodes under sampled actions, and what all their beginnings or all their ends have."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.spaces import arrays
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.play import Play
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.subject.actions import sample_seed_source

# The rounds of a program, the resets before each of them, and the time and memory for all.
_ROUNDS, _RESETS, _MOST_SECONDS, _MOST_BYTES = 8, 3, 1.0, 2e8
# So many ends of episodes of a row, so that chance is no explanation, and such a chance is small.
_FEWEST, _CHANCE = 4, 1e-5
# Starts that are drawn from very many come once each, and seldom a second time.
_DRAWN = 2
# So many steps tell what steps do, and so many truncations from different places that all lead to
# one place are no chance.
_STEPS, _CUTS = 20, 6

equal, distinct, kept, lasting, leaps, pieces = map(
    PRELUDE.__getitem__, ("equal", "distinct", "kept", "lasting", "leaps", "pieces")
)


@dataclass(frozen=True)
class Seen:
    """What a row has shown: first observations, steps, ends, first observations after ends.

    Attributes:
        starts: The first observations after resets.
        steps: Pairs of the observations before and after a step.
        ends: Of each episode the next to last and the last observation, and whether it was cut.
        firsts: The first observations after ends.
        lengths: Of each episode the number of its steps, and whether it began with a reset of all.
    """

    starts: list[Any]
    steps: list[tuple[Any, Any]]
    ends: list[tuple[Any, Any, bool]]
    firsts: list[Any]
    lengths: list[tuple[int, bool]]

    @property
    def cuts(self) -> list[tuple[Any, Any]]:
        """The next to last and the last observation of each truncated episode."""
        return [(before, last) for before, last, cut in self.ends if cut]


def watch(play: Play) -> list[Seen]:
    """Play some episodes under sampled actions; in the script they are `seen`, by row.

    Raises:
        NotExercisedError: If episodes do not end, or take too long.
    """
    subject = play.subject
    if not subject.endings or isinstance(subject.actions[0], dict | tuple):
        raise NotExercisedError
    most = 3 * max(ending.steps for ending in subject.endings) + 10
    if _ROUNDS * most * subject.step_seconds > 3 * _MOST_SECONDS:
        raise NotExercisedError("episodes are too long for several of them")
    play.make()
    if _size(play) * play.n * _ROUNDS * most > _MOST_BYTES:
        raise NotExercisedError("observations are too large to keep those of several episodes")
    play.run(sample_seed_source(subject, play.draw(st.integers(0, 99))))
    if subject.capabilities.get("seeding"):
        play.open()
    act = f"lambda: {play.sample()}"
    play.run(
        f"seen = episodes_of(env, {act}, {_ROUNDS}, {most}, {subject.mode!r}, resets={_RESETS})"
    )
    return [Seen(**found) for found in play.value("seen")]


def _size(play: Play) -> int:
    """The bytes of an observation of a row."""
    single = "" if play.family == "vec_env" else "single_"
    found = arrays(play.value(f"env.{single}observation_space"))
    return sum(math.prod(space.shape) * space.dtype.itemsize for _, space in found)


# First observations


def demand_like_reset(play: Play) -> None:
    """Demand that episodes after an end begin as those after a reset do.

    Raises:
        NotExercisedError: If too few episodes end.
    """
    judged = False
    for i, seen in enumerate(watch(play)):
        if len(seen.firsts) < _FEWEST or _stays(seen):
            continue
        judged = True
        should = f"{{}}, as after each of {len(seen.starts)} resets"
        if not kept(seen.starts, seen.firsts):
            shown = should.format(short(seen.starts[0], 80))
            condition = f"kept(seen[{i}]['starts'], seen[{i}]['firsts'])"
            play.demand(condition, f"seen[{i}]['firsts'][-1]", shown, i)
        if _too_much_alike(seen):
            shown = f"drawn anew, as after resets, not the same at {len(seen.firsts)} ends"
            condition = f"distinct(seen[{i}]['firsts']) > {distinct(seen.firsts)}"
            play.demand(condition, f"seen[{i}]['firsts'][-1]", shown, i)
        if _ends_at_once(seen):
            shown = f"longer episodes, as after {len(_lengths(seen, first=True))} resets"
            what = f"[n for n, first in seen[{i}]['lengths'] if not first]"
            play.demand(f"lasting(seen[{i}]['lengths'])", what, shown, i)
    if not judged:
        raise NotExercisedError("too few episodes ended")


def _stays(seen: Seen) -> bool:
    """Whether an episode begins where the last one ended: then an end leaves its mark by design."""
    return any(
        equal(last, first) for (_, last, _), first in zip(seen.ends, seen.firsts, strict=False)
    )


def _too_much_alike(seen: Seen) -> bool:
    """Whether equal first observations after ends are no chance, by those after resets."""
    if distinct(seen.starts) == len(seen.starts) > _DRAWN * _FEWEST:
        return bool(_DRAWN * distinct(seen.firsts) <= len(seen.firsts))
    if any(not equal(first, seen.firsts[0]) for first in seen.firsts):
        return False
    groups: list[Any] = []
    counts: Counter[int] = Counter()
    for start in seen.starts:
        known = [k for k, other in enumerate(groups) if equal(start, other)]
        groups += [] if known else [start]
        counts[known[0] if known else len(groups) - 1] += 1
    likeliest = (max(counts.values()) + 2) / (len(seen.starts) + 2)
    return bool(likeliest ** (len(seen.firsts) - 1) < _CHANCE)


def _ends_at_once(seen: Seen) -> bool:
    """Whether episodes after an end are cut at their first step, and those after resets never.

    Then the time limit goes on counting. So many of them are no chance, by those after resets.
    """
    first, later = (_lengths(seen, first=first) for first in (True, False))
    cut = [end[2] for end, (_, first) in zip(seen.ends, seen.lengths, strict=True) if not first]
    if lasting(seen.lengths) or not first or not all(cut):
        return False
    return bool((2 / (len(first) + 2)) ** len(later) < _CHANCE)


def _lengths(seen: Seen, *, first: bool) -> list[int]:
    return [length for length, was_first in seen.lengths if was_first == first]


# Last observations


def demand_like_steps(play: Play) -> None:
    """Demand that the last observations of truncated episodes come about as all others do.

    Raises:
        NotExercisedError: If it cannot be told.
    """
    judged = False
    for i, seen in enumerate(watch(play)):
        if len(seen.cuts) < _FEWEST:
            continue
        judged = True
        lasts = f"[last for _, last, cut in seen[{i}]['ends'] if cut]"
        if _one_place(seen):
            should = f"the observation after the last action, not zeros at {len(seen.cuts)} ends"
            play.demand(f"distinct({lasts}) > 1", f"{lasts}[-1]", should, i)
        told = len(seen.steps) >= _STEPS and distinct([last for _, last in seen.cuts]) > 1
        if told and leaps(seen.steps, seen.ends):
            should = f"in reach of one step from {short(seen.cuts[-1][0], 80)}"
            condition = f"not leaps(seen[{i}]['steps'], seen[{i}]['ends'])"
            play.demand(condition, f"{lasts}[-1]", should, i)
    if not judged:
        raise NotExercisedError("too few episodes were truncated")


def _one_place(seen: Seen) -> bool:
    """Whether all truncated episodes, from wherever, end with zeros that are seen nowhere else.

    A world may lead to one place when the time is up. It is another one, or is met elsewhere, too.
    """
    befores, lasts = zip(*seen.cuts, strict=True)
    if len(lasts) < _CUTS or distinct(lasts) > 1 or distinct(befores) < _FEWEST:
        return False
    parts = pieces(lasts[0])
    if any(part.dtype.kind not in "biufc" or part.any() for part in parts):
        return False
    places = [*seen.starts, *(after for _, after in seen.steps)]
    return not any(equal(lasts[0], place) for place in places)
