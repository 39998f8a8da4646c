"""What the episodes of a record show together, where one of them alone proves nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Call, Record
from sb3compat.conformance.rows import Episode, by_row
from sb3compat.conformance.subject.traits import floats
from sb3compat.conformance.values import Several, Value
from sb3compat.conformance.variants import action_of, seed_before

# Episodes that ended, each with the one that followed.
Pairs = list[tuple[Episode, Episode]]
# So many episodes of a row, so that chance is no explanation, and such a chance is small.
FEWEST, CHANCE = 4, 1e-5
# Starts drawn from very many possible ones occur once each, and rarely a second time.
_DRAWN = 2
# So many steps tell what steps do, and so many truncations what these do: that all lead from
# different places to one place, or to another scale, is no chance.
STEPS, _CUTS = 20, 8
# So many different ones show that something varies.
_VARIED = 3

equal, distinct, kept, pieces, pushed, rescaled, strays = map(
    PRELUDE.__getitem__, ("equal", "distinct", "kept", "pieces", "pushed", "rescaled", "strays")
)


def values(parts: Sequence[Value]) -> list[Any]:
    """What the values were."""
    return [value.value for value in parts]


# First observations


def like_reset(record: Record) -> Iterator[Demand]:
    """Episodes after an end begin as those after a reset do.

    Raises:
        NotExercisedError: If too few episodes end.
    """
    known: list[Value] = []
    judged = False
    for i, found in enumerate(by_row(record)):
        starts = [episode.first for episode in _reset(found)]
        firsts = [episode.first for episode in found if episode.by != "reset"]
        if len(firsts) < FEWEST or len(starts) < FEWEST or _stays(found):
            continue
        judged = True
        known += starts
        yield from _begins_as_known(starts, firsts, i)
        yield from _never_strays(starts, _followed(found), i)
        yield from _drawn_anew(starts, firsts, i)
        yield from _lasts(found, len(starts), i)
    if not judged:
        raise NotExercisedError("too few episodes ended")
    # Of rows that begin anew in one step, the first may be the only one that is looked after.
    second = _after_others(record)
    if len(second) >= FEWEST:
        yield from _begins_as_known(known, [episode.first for episode in second], second[-1].row)


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


def starts_drawn_anew(record: Record) -> Iterator[Demand]:
    """First observations after ends are drawn, where those after resets are vectors of floats.

    Raises:
        NotExercisedError: If too few episodes end, or they are none.
    """
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


def _never_strays(starts: list[Value], pairs: Pairs, i: int) -> Iterator[Demand]:
    """No part of the first observations after ends leaves what all resets share."""
    lasts, firsts = [before.last for before, _ in pairs], [after.first for _, after in pairs]
    if not pairs or not strays(*map(values, (starts, firsts, lasts))):
        return
    away = [first for first in firsts if not kept(values(starts), [first.value])]
    yield expect(
        "not strays({0}, {1}, {2})",
        Several(starts),
        Several(firsts),
        Several(lasts),
        away[-1],
        what="{3}",
        should=f"as after each of {len(starts)} resets, not otherwise at {len(away)} ends",
        row=i,
        like=starts[0],
    )


def _drawn_anew(starts: list[Value], firsts: list[Value], i: int) -> Iterator[Demand]:
    if too_much_alike(values(starts), values(firsts)):
        should = f"drawn anew, as after resets, not the same at {len(firsts)} ends"
        condition = f"distinct({{0}}) > {distinct(values(firsts))}"
        yield expect(condition, Several(firsts), firsts[-1], what="{1}", should=should, row=i)


def _stays(found: list[Episode]) -> bool:
    """Whether an episode begins where the last one ended: then an end leaves its mark by design."""
    over = [episode for episode in found if episode.over]
    after = {id(a): b for a, b in pairwise(found) if b.by != "reset"}
    pairs = [(episode, after[id(episode)]) for episode in over if id(episode) in after]
    return any(equal(one.last.value, other.first.value) for one, other in pairs)


def too_much_alike(starts: list[Any], firsts: list[Any]) -> bool:
    """Whether equal first observations after ends are no chance, by those after resets."""
    if distinct(starts) == len(starts) > _DRAWN * FEWEST:
        return bool(_DRAWN * distinct(firsts) <= len(firsts))
    if any(not equal(first, firsts[0]) for first in firsts):
        return False
    groups: list[Any] = []
    counts: Counter[int] = Counter()
    for start in starts:
        known = [k for k, other in enumerate(groups) if equal(start, other)]
        groups += [] if known else [start]
        counts[known[0] if known else len(groups) - 1] += 1
    likeliest = (max(counts.values()) + 2) / (len(starts) + 2)
    return bool(likeliest ** (len(firsts) - 1) < CHANCE)


def _lasts(found: list[Episode], resets: int, i: int) -> Iterator[Demand]:
    """Episodes after an end are not all over after as many steps as none after a reset is.

    Then the time limit goes on counting, or does not count the same steps. Terminations count only
    if they look like those at a limit: after a reset, too, they all come after as many steps.
    """
    over = [episode for episode in found if episode.over]
    later = [episode for episode in over if episode.by != "reset"]
    first = [len(episode.steps) for episode in _reset(over)]
    lasted = [len(episode.steps) for episode in later]
    cut = {episode.cut for episode in over}
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
            f"after {first[0]} steps, as after {resets} resets, and not over after {lasted[0]}"
            if len(set(first)) == 1
            else f"after {min(first)} steps at least, as after {resets} resets"
        )
        yield expect("not all({0})", ends, what="{0}", should=should, row=i)


def _flags(episode: Episode) -> Value:
    """The flag of an end."""
    end = episode.end
    if episode.record.family == "vec_env":
        return end.dones[episode.row]
    return (end.truncations if episode.cut else end.terminations)[episode.row]


# Last observations


def last_like_steps(record: Record) -> Iterator[Demand]:
    """The last observations of episodes come about as all other observations do.

    Raises:
        NotExercisedError: If it cannot be told.
    """
    for i, found in enumerate(by_row(record)):
        yield from _not_the_next_first(found, i)
        yield from _in_known_order(found, i)
        yield from _pushed_on(found, i)
        cuts = [episode for episode in found if episode.cut]
        if len(cuts) < FEWEST:
            continue
        record.judged = True
        moves = [pair for episode in found for pair in moves_of(episode)]
        yield from _no_one_place(found, cuts, moves, i)
        yield from _on_one_scale(cuts, moves, i)
    if not record.judged:
        raise NotExercisedError("too few episodes were truncated")


def moves_of(episode: Episode) -> list[tuple[Value, Value]]:
    """The observations before and after each step but the last."""
    seen = episode.seen[:-1] if episode.over else episode.seen
    return list(pairwise(seen))


def _no_one_place(
    found: list[Episode], cuts: list[Episode], moves: list[tuple[Value, Value]], i: int
) -> Iterator[Demand]:
    """Truncated episodes, from wherever, do not all end with zeros that are seen nowhere else.

    A world may lead to one place when the time is up. It is another one, or is met elsewhere, too.
    """
    lasts = [episode.last for episode in cuts]
    befores = [episode.seen[-2].value for episode in cuts]
    known = values(lasts)
    if len(known) < _CUTS or distinct(known) > 1 or distinct(befores) < FEWEST:
        return
    parts = pieces(known[0])
    if any(piece.dtype.kind not in "biufc" or piece.any() for piece in parts):
        return
    places = [*(e.first.value for e in found), *(after.value for _, after in moves)]
    if not any(equal(known[0], place) for place in places):
        should = f"the observation after the last action, not zeros at {len(known)} ends"
        yield expect(
            "distinct({0}) > 1", Several(lasts), lasts[-1], what="{1}", should=should, row=i
        )


def ends_unlike_starts(record: Record, accused: Literal["last", "first"]) -> Iterator[Demand]:
    """Last observations are not the first ones of the next episodes, where one of both is wrong.

    Args:
        record: The record.
        accused: The one that this is about. First ones lie within the range of those after resets.

    Raises:
        NotExercisedError: If it cannot be told.
    """
    for i, found in enumerate(by_row(record)):
        record.judged |= len(_followed(found)) >= FEWEST
        for kind, pairs in _alike_by_no_chance(found):
            if _look_first(found, [after.first.value for _, after in pairs]) == (accused == "last"):
                yield _not_all_alike(pairs, kind, accused, i)
    if not record.judged:
        raise NotExercisedError("too few episodes ended")


def _not_the_next_first(found: list[Episode], i: int) -> Iterator[Demand]:
    """Last observations are not the first ones of the next episodes, whichever of both is wrong."""
    for kind, pairs in _alike_by_no_chance(found):
        yield _not_all_alike(pairs, kind, "last", i, "; or else the first ones are wrong")


def _not_all_alike(pairs: Pairs, kind: str, accused: str, i: int, more: str = "") -> Demand:
    at = f"at every {kind}, it is the"
    should = {
        "last": f"the last of the episode; {at} first of the next one{more}",
        "first": f"the first of the next episode; {at} last of the one before",
    }
    lasts, firsts = [before.last for before, _ in pairs], [after.first for _, after in pairs]
    return expect(
        "not all(map(equal, {0}, {1}))",
        Several(lasts),
        Several(firsts),
        (lasts if accused == "last" else firsts)[-1],
        what="{2}",
        should=should[accused],
        row=i,
    )


def _followed(found: list[Episode]) -> Pairs:
    """The episodes that ended, each with the one that followed without a reset of all rows."""
    return [(a, b) for a, b in pairwise(found) if a.over and b.by != "reset"]


def _alike_by_no_chance(found: list[Episode]) -> Iterator[tuple[str, Pairs]]:
    """The kinds of ends at which all last observations are the next first ones, and must not be."""
    pairs = _followed(found)
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
    moves = [pair for episode in found for pair in moves_of(episode)]
    starts = [first for _, first in known]
    there = sum(equal(after.value, start) for _, after in moves for start in starts[:FEWEST])
    if ((there / FEWEST + 1) / (len(moves) + 2)) ** len(pairs) >= CHANCE:
        return False
    if distinct(starts) >= _VARIED:
        # A seed may move what a reset without one leaves where it is.
        broken = [(a, b) for a, b in pairwise(found) if not a.over and _is_unseeded_reset(b)]
        return sum(not equal(a.seen[-1].value, b.first.value) for a, b in broken) >= _VARIED
    befores = [a.seen[-2].value for a, _ in pairs]
    return all(e.cut for e in found if e.over) and distinct(befores) >= _VARIED


def _is_unseeded_reset(episode: Episode) -> bool:
    return episode.by == "reset" and seed_before(episode.record, episode.start) is None


def _look_first(found: list[Episode], firsts: list[object]) -> bool | None:
    """Whether all lie in the range of observations after resets; None if that says nothing."""
    known = [floats(episode.first.value) for episode in found if episode.by == "reset"]
    if len(known) < FEWEST or not known[0].size:
        return None
    low, high = np.min(known, axis=0), np.max(known, axis=0)
    margin = (high - low) / 2
    values = [floats(first) for first in firsts]
    return all(bool(((v >= low - margin) & (v <= high + margin)).all()) for v in values)


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
    seen = {before for before, _ in after} | {_bytes(then.value) for then in after.values()}
    for some in ends.values():
        known = [(last, after[way]) for way, last in some if way in after]
        lasts = [last.value for last, _ in known]
        if (
            len(known) >= _CUTS
            and seen.isdisjoint(map(_bytes, lasts))
            and all(_reordered(last.value, expected.value) for last, expected in known)
            and distinct(lasts) >= FEWEST
        ):
            last, expected = known[-1]
            should = "as after the same observation and action in other steps, in the same order"
            yield expect("equal({0}, {1})", last, expected, should=should, row=i, like=expected)


def _moves_by_action(episode: Episode) -> Iterator[tuple[tuple[bytes, bytes], Value]]:
    """For each step the observation before it with the action, and the observation after it."""
    for step, (before, after) in zip(episode.steps, pairwise(episode.seen), strict=True):
        action = action_of(episode.record, step.copies["actions"], episode.row)
        yield (_bytes(before.value), _bytes(action)), after


def _bytes(value: Any) -> bytes:
    return b" ".join(piece.tobytes() for piece in pieces(value))


def _reordered(one: Any, other: Any) -> bool:
    """Whether two observations have the same entries, in another order."""
    parts = list(zip(pieces(one), pieces(other), strict=False))
    return not equal(one, other) and all(equal(np.sort(a), np.sort(b)) for a, b in parts)


def _pushed_on(found: list[Episode], i: int) -> Iterator[Demand]:
    """A last observation is a stack of frames as all others are: the one before, moved on."""
    moves = [pair for episode in found for pair in moves_of(episode)]
    over = [episode for episode in found if episode.over and len(episode.steps) > 1]
    if len(moves) < STEPS or len(over) < FEWEST:
        return
    before, after = ([pair[k] for pair in moves] for k in (0, 1))
    stack = _stack(values(before), values(after))
    if stack is None:
        return
    lasts, befores = [episode.last for episode in over], [episode.seen[-2] for episode in over]
    if any(pushed([b.value], [a.value], *stack) for b, a in zip(befores, lasts, strict=True)):
        return
    axis, count = stack
    yield expect(
        f"pushed([{{1}}], [{{0}}], {axis}, {count})",
        lasts[-1],
        befores[-1],
        should="the frames before the last action, moved on by one, as after all other steps",
        row=i,
    )


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
    cuts: list[Episode], moves: list[tuple[Value, Value]], i: int
) -> Iterator[Demand]:
    """Truncations do not lead to another scale, as that of an observation before processing."""
    lasts, befores = [episode.last for episode in cuts], [episode.seen[-2] for episode in cuts]
    if len(moves) < STEPS or len(cuts) < _CUTS:
        return
    before, after = ([pair[k] for pair in moves] for k in (0, 1))
    if not rescaled(*map(values, (before, after, befores, lasts))):
        return
    yield expect(
        "not rescaled({0}, {1}, {2}, {3})",
        Several(before),
        Several(after),
        Several(befores),
        Several(lasts),
        lasts[-1],
        what="{4}",
        should=f"on the scale of {short(befores[-1].value, 80)}, the one before it",
        row=i,
    )
