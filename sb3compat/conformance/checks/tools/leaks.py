"""What of the infos is left over from a step, a row or an episode before."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from sb3compat.conformance.checks.tools.comparing import same
from sb3compat.conformance.checks.tools.evidence import (
    apart,
    by_chance,
    distinct,
    equal,
    followed,
    has,
    has_not,
    is_unseeded_reset,
    not_all_alike,
)
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.record import Call, Record
from sb3compat.conformance.rows import Episode, by_row, info_of, info_of_end
from sb3compat.conformance.values import Value
from sb3compat.conformance.variants import seed_before

# So often must something be seen, so that chance is no explanation.
_FEWEST = 3
_MANY = 6
# Where so many steps are expected, none is no chance.
_EXPECTED = 12
_NUMBERS = (int, float, np.number, np.bool_)
# What wrappers and vector environments add to the infos of an ending; other checks judge them.
ADDED = {
    "terminal_observation", "TimeLimit.truncated", "episode", "final_info", "final_obs",
    "final_observation",
}  # fmt: skip


def infos_of_their_own_step(record: Record) -> Iterator[Demand]:
    """The infos of a row have no key of another end: of its episode before, or of another row."""
    for i, found in enumerate(by_row(record)):
        pairs = [(a, b) for a, b in followed(found) if b.steps]
        if len(pairs) < _FEWEST:
            continue
        record.judged = True
        ends = [info_of(record, a.end, i) for a, _ in pairs]
        nexts = [info_of(record, _after(record, a, b), i) for a, b in pairs]
        first = {id(_after(record, a, b)) for a, b in pairs}
        others = [
            set(info_of(record, step, i).value)
            for episode in found
            for step in episode.before_end
            if id(step) not in first
        ]
        if len(others) < _FEWEST:
            continue
        for key in _left(ends, nexts, others):
            should = (
                f"no such entry: it is of the step before, in which the episode of row {i} ended"
            )
            yield has_not(nexts[-1], key, should, i)
    yield from _entries_of_ended_rows(record)
    yield from _zeros_of_rows_left_out(record)
    raise NotExercisedError("too few steps follow an end")


def _zeros_of_rows_left_out(record: Record) -> Iterator[Demand]:
    """A masked reset tells no zeros of rows that it leaves out, if it never does of the others."""
    resets = [call for call in record.batches if not call.is_step and call.mask is not None]
    known = [(bool(call.mask[i]), i, call.infos.info(i)) for call in resets for i in record.rows]
    for key in sorted({key for *_, info in known for key in info.value}, key=str):
        given = [info.value[key] for named, _, info in known if named and key in info.value]
        left = [(i, info) for named, i, info in known if not named and key in info.value]
        both = [*given, *(info.value[key] for _, info in left)]
        # Others cannot be zero, and a flag may tell who was reset.
        if not all(isinstance(value, int | float | np.number | np.ndarray) for value in both):
            continue
        numbers = [np.asarray(value) for value in both]
        if any(number.dtype.kind not in "iuf" for number in numbers):
            continue
        told = [bool(number.any()) for number in numbers]
        others = told == [True] * len(given) + [False] * len(left)
        if others and distinct(given) >= _FEWEST and len(left) >= _MANY:
            i, info = left[-1]
            should = "no such entry, as this row was not reset; those that were have other numbers"
            yield expect(
                f"{key!r} not in {{0}}", info, what=f"{{0}}[{key!r}]", should=should, row=i
            )


def _after(record: Record, episode: Episode, later: Episode) -> Call:
    """The call after the end of an episode: a step of the next one, or the step that resets."""
    return later.start if record.mode == "NextStep" else later.steps[0]


def _left(ends: list[Value], nexts: list[Value], others: list[set[Any]]) -> list[Any]:
    """The keys that ends of episodes have, and steps after them with the same value, only."""
    keys = set.intersection(*(set(info.value) for info in (*ends, *nexts)))
    rare = keys - set().union(*others) - ADDED
    same = [k for k in rare if all(same_entry(a, b, k) for a, b in zip(ends, nexts, strict=True))]
    return sorted(same, key=str)


def same_entry(one: Value, other: Value, key: Any) -> bool:
    """Whether two infos have an equal entry under a key."""
    here, there = one.value, other.value
    return key in here and key in there and bool(equal(here[key], there[key]))


def keys_of_their_own_row(record: Record) -> Iterator[Demand]:
    """A row's info has no empty entry because another row has that entry."""
    infos = [[info_of(record, step, i) for i in record.rows] for step in record.steps]
    known = [[dict(info.value) for info in row] for row in infos]
    keys = {key for row in known for info in row for key in info} - ADDED
    for key in sorted(keys, key=str):
        with_it = [k for k, row in enumerate(known) if any(_told(info, key) for info in row)]
        partial = [k for k in with_it if not all(_told(info, key) for info in known[k])]
        record.judged |= bool(partial)
        if len(partial) < _FEWEST:
            continue
        empty = [
            (k, i)
            for k in partial
            for i in record.rows
            if key in known[k][i] and not _told(known[k][i], key)
        ]
        missing = sum(key not in info for k in partial for info in known[k])
        without = [k for k in range(len(known)) if k not in with_it]
        alone = any(key in info for k in without for info in known[k])
        if len(empty) >= _FEWEST and not missing and not alone and without:
            k, i = empty[-1]
            yield expect(
                f"{{0}}.get({key!r}, 0) is not None",
                infos[k][i],
                what=f"{{0}}[{key!r}]",
                should="no such entry, as the environment of this row has given none",
                row=i,
            )
    if record.subject.capabilities.get("separate_rows"):
        yield from _zeros_beside_others(infos)
    raise NotExercisedError("no entry of the infos is in some rows only, or too rarely")


def _zeros_beside_others(infos: list[list[Value]]) -> Iterator[Demand]:
    """No entry is zero only where that of another row is not.

    If rows were independent, all that have the entry would have zeros in some steps: in how many is
    known from how often each of them has one.
    """
    known = [[info.value for info in row] for row in infos]
    for key in sorted({key for row in known for info in row for key in info} - ADDED, key=str):
        given = [{i: info[key] for i, info in enumerate(row) if key in info} for row in known]
        values = [value for row in given for value in row.values()]
        if all(given) or not all(isinstance(value, _NUMBERS) for value in values):
            continue
        # What lasts is seen once.
        filled = [{i: bool(value) for i, value in row.items()} for row in given]
        seen = [row for before, row in pairwise(filled) if row and row != before]
        if not all(any(row.values()) for row in seen):
            continue
        empty = {
            i: float(np.mean([not row[i] for row in seen if i in row]))
            for i in {i for row in seen for i in row}
        }
        if sum(math.prod(empty[i] for i in row) for row in seen) < _EXPECTED:
            continue
        k, i = next((k, i) for k, row in enumerate(filled) for i in row if not row[i])
        yield expect(
            f"{{0}}.get({key!r}, 1) != 0",
            infos[k][i],
            what=f"{{0}}[{key!r}]",
            should="no such entry: it is zero only where another row has one that is not",
            row=i,
        )


def _entries_of_ended_rows(record: Record) -> Iterator[Demand]:
    """If in each step as many rows have an entry as end, the rows that end have it."""
    infos = {step.number: [info_of(record, step, i) for i in record.rows] for step in record.steps}
    keys = {key for row in infos.values() for info in row for key in info.value} - ADDED
    for key in sorted(keys, key=str):
        having = {
            number: [i for i, info in enumerate(row) if _told(info.value, key)]
            for number, row in infos.items()
        }
        counts = [(len(having[step.number]), len(step.ended)) for step in record.steps]
        some = sum(0 < ended < record.num_envs for _, ended in counts)
        if any(a != b for a, b in counts) or min(some, counts.count((0, 0))) < _MANY:
            continue
        for step in record.steps:
            for i in sorted({*having[step.number]} - {*step.ended}):
                should = "no such entry: as many rows have it as end, and this one goes on"
                yield has_not(infos[step.number][i], key, should, i)


def _told(info: dict[Any, Any], key: Any) -> bool:
    return info.get(key) is not None


def infos_of_autoresets(record: Record) -> Iterator[Demand]:
    """The infos of a step that resets a row have what each reset gives."""
    for i, found in enumerate(by_row(record)):
        resets = [
            info_of(record, episode.start, i).value
            for episode in found
            if is_unseeded_reset(episode)
        ]
        begun = [info_of(record, e.start, i) for e in found if e.by == "auto"]
        if len(begun) < _FEWEST or len(resets) < _FEWEST:
            continue
        always = set.intersection(*map(set, resets)) - ADDED
        steps = _steps_only(record, found, i)
        for key in sorted(always, key=str):
            # An environment may give constants in its first reset only.
            if distinct([info[key] for info in resets]) < _FEWEST:
                continue
            record.judged = True
            if all(key not in info.value for info in begun):
                should = f"with {key!r}, as the reset of the row gives it"
                yield has(begun[-1], key, should, i)
        # What steps give is not known of a row in which each one ends an episode.
        over = [e for e in found if e.over] if any(e.before_end for e in found) else []
        ends = [e.end.infos for e in over if "final_info" in e.end.infos.value]
        pairs = [(infos["final_info"].info(i), infos.info(i)) for infos in ends]
        yield from _no_reset_info_in_final(pairs, always - steps, i)
        yield from _no_step_info_outside(pairs, steps.difference(*resets), i)
    yield from _not_left_over(record)
    yield from _not_of_the_episode_before(record)
    raise NotExercisedError("resets have no infos that differ, or too few are known")


def _steps_only(record: Record, found: Sequence[Episode], i: int) -> set[Any]:
    """The keys that the infos of steps before the end have."""
    infos = (info_of(record, step, i) for e in found for step in e.steps if step is not e.end)
    return {key for info in infos for key in info.value}


def _no_reset_info_in_final(
    pairs: Sequence[tuple[Value, Value]], of_resets: set[Any], i: int
) -> Iterator[Demand]:
    """`final_info` has no entry of the reset that follows."""
    for key in sorted(of_resets, key=str) if len(pairs) >= _FEWEST else ():
        if all(same_entry(*pair, key) for pair in pairs):
            yield expect(
                f"{key!r} not in {{0}}",
                pairs[-1][0],
                should=f"without {key!r}, which resets give and steps do not",
                row=i,
            )


def _no_step_info_outside(
    pairs: Sequence[tuple[Value, Value]], of_steps: set[Any], i: int
) -> Iterator[Demand]:
    """What steps alone give is in `final_info`, and not beside the infos of the reset, too."""
    for key in sorted(of_steps - ADDED, key=str):
        left = [outside for final, outside in pairs if same_entry(final, outside, key)]
        if len(left) >= _FEWEST:
            should = (
                f"no such entry: it is of the step that ended the episode, and in "
                f"`final_info`; resets give no {key!r}"
            )
            yield has_not(left[-1], key, should, i)


def _not_left_over(record: Record) -> Iterator[Demand]:
    """What is the same after each reset of all rows is not that of the last step at autoresets.

    A level or a count that outlasts episodes goes on in the steps after the autoreset; what is left
    over, such as a mask, has its usual value there.
    """
    for i, found in enumerate(by_row(record)):
        resets = [e for e in found if e.by == "reset"]
        auto = [(a, b) for a, b in pairwise(found) if b.by == "auto" and b.steps]
        if len(resets) < _FEWEST or len(auto) < _FEWEST:
            continue
        firsts = [_of_start(record, e) for e in resets]
        nexts = [info_of(record, e.steps[0], i).value for e in resets if e.steps]
        for key in sorted(set.intersection(*(set(f.value) for f in firsts)) - ADDED, key=str):
            usual = firsts[0].value[key]
            if distinct([first.value[key] for first in firsts]) > 1:
                continue
            known = [usual, *(info[key] for info in nexts if key in info)]
            left = [
                _of_start(record, b)
                for a, b in auto
                if same_entry(_of_start(record, b), info_of_end(record, a), key)
                and not equal(_of_start(record, b).value[key], usual)
                and any(equal(info_of(record, b.steps[0], i).value.get(key), v) for v in known)
            ]
            if len(left) >= _FEWEST:
                should = "as after each reset, not that of the last step of the episode before"
                got, first = left[-1][key], firsts[0][key]
                yield same(got, first, should, i)


def _not_of_the_episode_before(record: Record) -> Iterator[Demand]:
    """What each reset of all rows makes anew is not that of the last step at all autoresets.

    A count that outlasts episodes goes on after other resets, too; a level is the same in most
    steps of an episode. Values that resets of all rows give may be met at an end by chance.
    """
    for i, found in enumerate(by_row(record)):
        resets = [e for e in found if e.by == "reset"]
        broken = [(a, b) for a, b in pairwise(found) if b.by == "reset" and a.steps and not a.over]
        auto = [(a, b) for a, b in followed(found) if not equal(a.last.value, b.first.value)]
        if len(broken) < _FEWEST or len(auto) < _MANY:
            continue
        pairs = [(info_of_end(record, a), _of_start(record, b)) for a, b in auto]
        pairs_of_broken = [
            (info_of(record, a.steps[-1], i), _of_start(record, b)) for a, b in broken
        ]
        given = [_of_start(record, e).value for e in resets]
        told = [*given, *(info.value for pair in [*pairs, *pairs_of_broken] for info in pair)]
        for key in sorted(set.intersection(*map(set, told)) - ADDED, key=str):
            if any(same_entry(*pair, key) for pair in pairs_of_broken) or not _moves(
                record, found, key
            ):
                continue
            alien = [
                pair for pair in pairs if not any(equal(pair[1].value[key], g[key]) for g in given)
            ]
            lasts, firsts = apart([(last[key], first[key]) for last, first in alien])
            if len(alien) >= _MANY and distinct([last.value for last in lasts]) >= _FEWEST:
                should = f"that of the new episode; in {len(alien)} autoresets, it is that of "
                yield not_all_alike(firsts, lasts, f"{should}the last step before", i)


def _moves(record: Record, found: Sequence[Episode], key: Any) -> bool:
    """Whether an entry changes in most steps."""
    steps = [
        (info_of(record, a, e.row).value.get(key), info_of(record, b, e.row).value.get(key))
        for e in found
        for a, b in pairwise(e.before_end)
    ]
    return 2 * sum(not equal(a, b) for a, b in steps) > len(steps)


def _of_start(record: Record, episode: Episode) -> Value:
    """The info of the reset that began an episode."""
    if record.family == "vec_env":
        return episode.start.reset_infos[episode.row]
    return info_of(record, episode.start, episode.row)


def reset_infos_of_new_resets(record: Record) -> Iterator[Demand]:
    """Where a row of a `VecEnv` ends, its `reset_infos` are those of a new reset."""
    for i, found in enumerate(by_row(record)):
        resets = [reset.reset_infos[i].value for reset in record.resets]
        pairs = [(before, step) for before, step in record.pairs if i in step.ended]
        befores, ends = apart(pairs)
        if not ends or len(resets) < 2:
            continue
        record.judged = True
        always = set.intersection(*map(set, resets))
        alien = keys_of_all_steps(record, found, i) - set().union(*resets)
        for end in ends:
            keys = set(end.reset_infos[i].value)
            if keys & (alien | {"terminal_observation"}) and always - keys:
                key = min(always - keys, key=str)
                should = (
                    f"the info of the new reset, with {key!r} as after each reset(), not of a step"
                )
                yield has(end.reset_infos[i], key, should, i)
        # A seed may be told, and stay until there is another one.
        unseeded = [
            equal(before.reset_infos[i].value, reset.reset_infos[i].value)
            for before, reset in pairwise(record.batches)
            if not reset.is_step and seed_before(record, reset) is None
        ]
        known = len(unseeded) >= _FEWEST
        if known and not by_chance(sum(unseeded), len(unseeded), len(ends)):
            own, old = ([call.reset_infos[i] for call in calls] for calls in (ends, befores))
            should = "the info of the new reset, not of an earlier reset"
            yield not_all_alike(own, old, should, i)
    yield from _not_left_over(record)
    yield from _not_of_the_episode_before(record)
    raise NotExercisedError("too few episodes ended")


def keys_of_all_steps(record: Record, found: Sequence[Episode], i: int) -> set[Any]:
    """The keys that the infos of all steps but the last ones have."""
    keys = [set(info_of(record, step, i).value) for e in found for step in e.before_end]
    return set.intersection(*keys) if keys else set()
