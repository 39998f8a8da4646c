"""The first observations of episodes: after an end as after a reset, by those of many episodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sb3compat.conformance.checks.tools.evidence import (
    CHANCE,
    FEWEST,
    STEPS,
    apart,
    broken_off,
    distinct,
    equal,
    followed,
    is_unseeded_reset,
    moves_of,
    not_all_alike,
    too_much_alike,
    values,
)
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Call, Record
from sb3compat.conformance.replays import beside
from sb3compat.conformance.rows import Episode, by_row
from sb3compat.conformance.subject.traits import floats
from sb3compat.conformance.values import Several, Value
from sb3compat.conformance.variants import seed_before

kept, numbers_in, strays = (PRELUDE[name] for name in ("kept", "numbers_in", "strays"))
# The steps of a clock, as a part of the first one; floats are rounded.
_STEADY = 1e-3


def autoreset_like_reset(record: Record) -> Iterator[Demand]:
    """Episodes begin after an end as they do after `reset()`.

    What each reset sets back to the same value, such as a step counter within the observation, has
    that value there, too; and what each reset draws is drawn. Typical mistakes: the reset of a row
    sets back a part of the state only, or hands out zeros. In a `VectorEnv` in DISABLED mode this
    is about the masked resets that the caller asks for.
    """
    known: list[Value] = []
    pooled: list[Value] = []
    together: list[list[Episode]] = []
    agreed = [i for i in record.rows if _begins_as_its_single(record, i)]
    for i, found in enumerate(by_row(record)):
        starts = [episode.first for episode in _reset_after_ends(found)]
        drawn = [episode.first for episode in _reset(found)]
        firsts = [episode.first for episode in found if episode.by != "reset"]
        if len(firsts) < FEWEST or len(starts) < FEWEST or _stays(found):
            continue
        known += starts
        if i in agreed:
            record.judged = True
        else:
            yield from _leaves_the_episode(found, i)
            yield from _begins_as_known(starts, firsts, i)
            for cut in (False, True):
                later = [b.first for a, b in followed(found) if a.cut == cut]
                if len(later) >= FEWEST:
                    yield from _begins_as_known(starts, later, i)
            yield from _never_strays(drawn, [found], i)
            pooled += drawn
            together.append(found)
        yield from _drawn_anew(drawn, firsts, i)
        yield from _lasts(found, i)
    # In each row alone, too few ends may leave it.
    if len(together) > 1:
        yield from _never_strays(pooled, together)
    # Of rows that begin anew in one step, the first may be the only one that is looked after.
    second = [episode for episode in _after_others(record) if episode.row not in agreed]
    if known and len(second) >= FEWEST:
        yield from _begins_as_known(known, [episode.first for episode in second], second[-1].row)
    raise NotExercisedError("too few episodes ended")


def _begins_as_its_single(record: Record, i: int) -> bool:
    """Whether the row agrees with its single environment: what this keeps over an end is right."""
    known = [each for each in beside(record) if each.row == i]
    begun = [each for each in known if each.kind == "start" and each.episode.by != "reset"]
    return bool(begun) and all(each.agrees for each in known)


def _after_others(record: Record) -> list[Episode]:
    """The episodes that begin after an end, in the same step as one of a row above."""
    begun: set[Call] = set()
    found = []
    for episodes in by_row(record):
        later = [episode for episode in episodes if episode.by != "reset"]
        found += [episode for episode in later if episode.start in begun]
        begun.update(episode.start for episode in later)
    return found


def _reset(found: list[Episode]) -> list[Episode]:
    """The episodes after resets; of those under one seed, which begin alike, the first."""
    seeds: set[object] = set()
    kept = []
    for episode in (each for each in found if each.by == "reset"):
        seed = seed_before(episode.record, episode.start)
        if seed is None or seed not in seeds:
            kept.append(episode)
        seeds.add(seed)
    return kept


def _reset_after_ends(found: list[Episode]) -> list[Episode]:
    """The episodes after resets without a seed and after an end, between two seeds.

    An episode may earn something for the next ones, such as a level, which a seed sets back. It may
    be the same at one place after each seed, so those of one part of the record are returned: the
    part with most of them. Of several resets without an end in between, the last one counts.
    """
    parts: list[list[Episode]] = [[]]
    earned = new = False
    for episode in found:
        if episode.by == "reset" and not is_unseeded_reset(episode):
            parts.append([])
            earned = False
        elif episode.by == "reset" and earned:
            parts[-1][len(parts[-1]) - (not new) :] = [episode]
            new = False
        earned |= episode.over
        new |= episode.over
    return max(parts, key=len)


def starts_drawn_anew(record: Record) -> Iterator[Demand]:
    """First observations after ends are drawn, where those after resets are vectors of floats."""
    judged = False
    for i, found in enumerate(by_row(record)):
        starts = [episode.first for episode in _reset(found)]
        firsts = [episode.first for episode in found if episode.by != "reset"]
        if len(firsts) >= FEWEST and len(starts) >= 2 and floats(starts[0].value).size:
            judged = True
            yield from _drawn_anew(starts, firsts, i)
    if not judged:
        raise NotExercisedError("too few episodes ended, or observations are no vectors of floats")


def _begins_as_known(starts: list[Value], firsts: list[Value], i: int) -> Iterator[Demand]:
    should = f"as after each of {len(starts)} resets"
    values = Several(starts), Several(firsts), firsts[-1]
    yield expect("kept({0}, {1})", *values, what="{2}", should=should, row=i, like=starts[0])


def _never_strays(
    starts: list[Value], rows: list[list[Episode]], i: int | None = None
) -> Iterator[Demand]:
    """In these rows, no first observation after an end leaves what those of all resets share."""
    pairs = [pair for found in rows for pair in followed(found)]
    clocks = _clocks([episode for found in rows for episode in found])
    lasts, firsts = [before.last for before, _ in pairs], [after.first for _, after in pairs]
    if not pairs or not strays(*map(values, (starts, firsts, lasts)), clocks):
        return
    away = [first for first in firsts if not kept(values(starts), [first.value])]
    yield expect(
        f"not strays({{0}}, {{1}}, {{2}}, {clocks})" if clocks else "not strays({0}, {1}, {2})",
        Several(starts),
        Several(firsts),
        Several(lasts),
        away[-1],
        what="{3}",
        should=f"as after each of {len(starts)} resets; it differs at {len(away)} ends",
        row=i,
        like=starts[0],
    )


def _clocks(found: list[Episode]) -> list[int]:
    """The places of the floats in observations that each step moves by the same."""
    before, after = ([numbers_in(v.value, "f") for v in some] for some in apart(moves_of(*found)))
    if len(before) < STEPS or len({len(numbers) for numbers in (*before, *after)}) != 1:
        return []
    moved = np.subtract(after, before)
    steady = abs(moved - moved[0]) <= _STEADY * abs(moved[0])
    places: list[int] = np.flatnonzero(steady.all(axis=0) & (moved[0] != 0)).tolist()
    return places


def _drawn_anew(starts: list[Value], firsts: list[Value], i: int) -> Iterator[Demand]:
    if too_much_alike(values(starts), values(firsts)):
        should = f"drawn anew, as after resets, not the same at {len(firsts)} ends"
        condition = f"distinct({{0}}) > {distinct(values(firsts))}"
        yield expect(condition, Several(firsts), firsts[-1], what="{1}", should=should, row=i)


def _leaves_the_episode(found: list[Episode], i: int) -> Iterator[Demand]:
    """A reset within an episode does not go on with it, as no end does."""
    broken = [(a.seen[-1], b.first) for a, b in broken_off(found) if a.steps]
    lasts, firsts = apart(broken)
    if distinct(values(lasts)) >= FEWEST:
        should = (
            "the first observation of an episode, as after each end; after each of "
            f"{len(broken)} resets within an episode, it is the last one before"
        )
        yield not_all_alike(firsts, lasts, should, i)


def _stays(found: list[Episode]) -> bool:
    """Whether an episode begins where the last one ended: then an end leaves its mark by design."""
    return any(equal(a.last.value, b.first.value) for a, b in followed(found))


def _lasts(found: list[Episode], i: int) -> Iterator[Demand]:
    """Episodes after an end are not all over after as many steps as none after a reset is.

    Then the time limit goes on counting, or does not count the same steps. Terminations count only
    if they look like those at a limit: after a reset, too, they all come after as many steps.
    """
    later = [episode for episode in found if episode.over and episode.by != "reset"]
    reset = [episode for episode in _reset_after_ends(found) if episode.over]
    first = [len(episode.steps) for episode in reset]
    lasted = [len(episode.steps) for episode in later]
    cut = {episode.cut for episode in (*later, *reset)}
    if not first or len(set(lasted)) != 1 or len(cut) != 1:
        return
    if cut == {False} and len(set(first)) != 1:
        return
    n, m = len(first), len(later)
    if len(set(first)) == 1:  # as likely as it can be, if the limit is drawn
        chance = (n / (n + m)) ** n * (m / (n + m)) ** m / 10
    else:
        chance = (2 / (n + 2)) ** m if lasted[0] == 1 else 1.0
    if lasted[0] not in first and chance < CHANCE:
        ends = Several([_flags(episode) for episode in later])
        should = (
            f"after {first[0]} steps, as after {n} resets, and not over after {lasted[0]}"
            if len(set(first)) == 1
            else f"after {min(first)} steps at least, as after {n} resets"
        )
        yield expect("not all({0})", ends, what="{0}", should=should, row=i)


def _flags(episode: Episode) -> Value:
    """The flag of an end."""
    end = episode.end
    if episode.record.family == "vec_env":
        return end.dones[episode.row]
    return (end.truncations if episode.cut else end.terminations)[episode.row]
