"""Demands on two records of programs that differ in one thing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Clause, Demand, Variant, expect, twin_of
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Call, Record
from sb3compat.conformance.rows import Episode, by_row, last_of, obs_of
from sb3compat.conformance.subject.traits import floats
from sb3compat.conformance.values import Value
from sb3compat.conformance.variants import (
    after_another_episode,
    after_first_end,
    changed_row,
    first_end,
    other_actions_in_a_row,
    reset_after_the_end,
    resets_before_the_end,
    seed_of,
    stepping_on,
    under_other_seeds,
)

_RESULTS = ("rewards", "dones", "terminations", "truncations")
_ZERO = "is 0 taken for no seed, as by `if seed:`?"
# So many steps after an end are compared.
_AFTER = 3

equal = PRELUDE["equal"]


def alike(record: Record, twin: Record, should: str) -> Iterator[Demand]:
    """The variant returns in each row what the program returned.

    Args:
        record: The record of the program.
        twin: The record of its variant.
        should: The end of a sentence: why it has to.
    """
    for one, other in zip(record.batches, twin.batches, strict=False):
        yield from calls_alike(record, one, twin, other, should)


def alike_under_a_seed(record: Record, twin: Record, should: str) -> Iterator[Demand]:
    """Two instances do the same under a seed; a failure says so if only the seed 0 fails."""
    for demand in alike(record, twin, should):
        if seed_of(record) == 0 and not demand.holds() and _other_seeds_repeat(record):
            yield replace(demand, words=f"{demand.words}. Other seeds repeat: {_ZERO}")
        else:
            yield demand


def _other_seeds_repeat(record: Record) -> bool:
    change = partial(under_other_seeds, record)
    one, two = (record.other((under_other_seeds, k), change, "twin") for k in range(2))
    same = all(demand.holds() for demand in alike(one, two, ""))
    return same and one.error is None and bool(one.batches)


def actions_not_kept(record: Record, twin: Record) -> Iterator[Demand]:
    """`step` may be given the same array each time, filled with the actions of that step.

    Typical mistake: `self.last_actions = actions`, for a penalty on jerks, say. The last actions
    are those of the present step by then, and the penalty is 0. Copy them. It is a warning, as
    most callers make new arrays, and environments of single rows may keep parts of them.
    """
    if not any(isinstance(step.copies.get("actions"), np.ndarray) for step in record.steps):
        raise NotExercisedError("actions are no arrays")
    yield from alike(record, twin, "as with a new array of actions in each step")


def writing_outputs_does_not_change_env(record: Record, twin: Record) -> Iterator[Demand]:
    """Writing into observations, rewards, flags and infos does not change the environment.

    Algorithms do write: they correct rewards for time limits, normalise observations, and add
    keys to infos. If the environment returns its own state, that changes it. Return copies.
    """
    yield from alike(record, twin, "as in an instance whose results were not written into")


def calls_alike(
    record: Record, one: Call, twin: Record, other: Call, should: str
) -> Iterator[Demand]:
    """A call of the twin has returned in each row what the one of the environment has."""
    for got, expected, i in _rows(twin, other, record, one):
        yield same(got, expected, should, i)
    for a, b in results(other, one):
        if _by_row(a, record.num_envs) and _by_row(b, record.num_envs):
            for i in record.rows:
                yield same(a[i], b[i], should, i)
        else:  # another check judges the shape
            yield same(a, b, should)


def _rows(
    twin: Record, other: Call, record: Record, one: Call
) -> list[tuple[Value, Value, int | None]]:
    """The observations of two calls, row by row."""
    try:
        return [(obs_of(twin, other, i), obs_of(record, one, i), i) for i in record.rows]
    except (IndexError, KeyError, TypeError):  # another structure, which a check reports
        return [(other.obs, one.obs, None)]


def _by_row(value: Value, n: int) -> bool:
    return bool(np.shape(value.value)[:1] == (n,))


def results(a: Call, b: Call) -> Iterator[tuple[Value, Value]]:
    """The rewards and flags of two steps, in pairs; none of resets."""
    names = (name for name in _RESULTS if name in a.copies and name in b.copies)
    return ((getattr(a, name), getattr(b, name)) for name in names)


def same(got: Value, expected: Value, should: str, i: int | None = None) -> Demand:
    """A value equals another one, which the message shows before why it has to."""
    return expect("equal({0}, {1})", got, expected, should=should, row=i, like=expected)


def others_alike(record: Record) -> Iterator[Demand]:
    """The actions of one row make no difference to the others."""
    if seed_of(record) is None:
        raise NotExercisedError("it takes no seeds")
    i = changed_row(record)
    twin = twin_of(record, other_actions_in_a_row)
    why = f"as it was with other actions in row {i}"
    for one, other in zip(record.steps, twin.steps, strict=False):
        for j in (j for j in record.rows if j != i):
            for a, b in results(other, one):
                yield same(a[j], b[j], why, j)
            yield same(obs_of(twin, other, j), obs_of(record, one, j), why, j)
            if j in one.ended and record.mode in (None, "SameStep"):
                yield same(last_of(twin, other, j), last_of(record, one, j), why, j)
            if j in one.ended and record.family == "vec_env":
                yield same(_cut(other, j), _cut(one, j), why, j)


def _cut(step: Call, i: int) -> Value:
    """Whether an end of row i is one by truncation alone, in a `VecEnv`."""
    flag: Value = step.infos[i].get("TimeLimit.truncated", False)
    return flag


def all_of(*clauses: Clause) -> Clause:
    """A clause that demands what several demand; not exercised if none of them can tell."""

    def all_clauses(record: Record) -> Iterator[Demand]:
        reasons: list[str] = []
        for clause in clauses:
            yield from _noting(clause(record), reasons)
        if len(reasons) == len(clauses):
            raise NotExercisedError(reasons[0])

    return all_clauses


def _noting(demands: Iterator[Demand], reasons: list[str]) -> Iterator[Demand]:
    try:
        yield from demands
    except NotExercisedError as error:
        reasons.append(str(error))


# The end of the first episode, and what the twin does there


def way_to_the_end(record: Record) -> list[Call]:
    """The steps from a reset with a seed to the first end."""
    way = first_end(record)
    if not way:
        raise NotExercisedError("no program leads from a seed to an end")
    return way


def way_under_own_seeds(record: Record) -> list[Call]:
    """The same where a row's later starts do not depend on what other rows draw."""
    way = way_to_the_end(record)
    if not (record.subject.capabilities.get("own_generators") or record.num_envs == 1):
        raise NotExercisedError("rows may share a generator")
    return way


def whole_twin_of(record: Record, variant: Variant) -> Record:
    """The record of a variant, all of whose calls have returned.

    Raises:
        NotExercisedError: If one has not: other checks judge that.
    """
    twin = twin_of(record, variant)
    if twin.error is not None or not twin.calls[-1].complete:
        raise NotExercisedError("another instance raised")
    return twin


def last_as_in_first_episode(record: Record) -> Iterator[Demand]:
    """Last observations do not depend on episodes that came before.

    Under one seed and the same actions, an instance that has ended others does as a new one.
    """
    way = way_to_the_end(record)
    twin = whole_twin_of(record, after_another_episode)
    later = twin.steps[-len(way) :]
    before = list(zip(way[:-1], later[:-1], strict=True))
    pairs = [*before, (record.resets[0], twin.resets[-1])]
    if any(b.flags.any() for _, b in before) or not all(
        equal(a.copies["obs"], b.copies["obs"]) for a, b in pairs
    ):
        raise NotExercisedError("two instances under one seed are not alike")
    for i in set(way[-1].ended) & set(later[-1].ended):
        got, expected = last_of(twin, later[-1], i), last_of(record, way[-1], i)
        yield same(got, expected, "as in an instance that has ended no episode", i)


def last_is_not_of_a_reset(record: Record) -> Iterator[Demand]:
    """An ending step does not return the result of a reset just before it.

    Raises:
        NotExercisedError: If rows share a generator, so that the twin would begin elsewhere; or if
            an end may equal a start by chance.
    """
    way = way_under_own_seeds(record)
    twin = whole_twin_of(record, resets_before_the_end)
    for after in episodes_after(record, way[-1]):
        i = after.row
        last, known = last_of(record, way[-1], i), obs_of(twin, twin.resets[-1], i)
        # Any step may lead to what a reset gives: to a start that is kept, or drawn anew.
        kept = equal(obs_of(record, way[0], i).value, obs_of(twin, twin.resets[1], i).value)
        if not kept and _resets_alone_draw(record, i):
            should = f"the last observation, not that of a reset: {short(known.value)}"
            condition = "not equal({0}, {2}) or equal({1}, {2})"
            yield expect(condition, last, after.first, known, should=should, row=i)


def _resets_alone_draw(record: Record, i: int) -> bool:
    """Whether a row begins with fractions, drawn as nothing else is: no step leads there."""
    twin = whole_twin_of(record, resets_before_the_end)
    early, late = (obs_of(twin, twin.resets[k], i).value for k in (1, -1))
    return bool((floats(late) % 1).any() and equal(early, late))


def no_reset_by_a_step(record: Record) -> Iterator[Demand]:
    """If a row that ended can be stepped in DISABLED mode, that step is no reset."""
    way = way_to_the_end(record)
    twin = twin_of(record, stepping_on)
    record.judged = True
    for after in episodes_after(record, way[-1]) if twin.error is None else ():
        i = after.row
        if not _resets_alone_draw(record, i):
            continue
        last, got = last_of(record, way[-1], i), obs_of(twin, twin.steps[-1], i)
        yield expect(
            "equal({1}, {2}) or not equal({0}, {2})",
            got,
            last,
            after.first,
            should="something else than a reset gives: it was not asked for",
            row=i,
        )


def episodes_after(record: Record, end: Call) -> Iterator[Episode]:
    """The episodes that follow those which a step has ended, without a reset of all rows."""
    for found in by_row(record):
        for before, after in pairwise(found):
            if before.over and before.end is end and after.by != "reset":
                yield after


def as_after_a_reset_of_all_rows(record: Record) -> Iterator[Demand]:
    """In NEXT_STEP mode a row that ended goes on as after a reset of all rows at that point.

    Raises:
        NotExercisedError: If rows share a generator, or no step follows an end; or unless resets
            alone draw, as otherwise the step that resets a row may draw before it does.
    """
    way = way_under_own_seeds(record)
    later = after_first_end(record)
    if not later:
        raise NotExercisedError("no step follows an end")
    resets = whole_twin_of(record, resets_before_the_end).resets
    seeded, early, _, late = (reset.copies["obs"] for reset in resets)
    if len(way) == 1 or equal(seeded, early) or not equal(early, late):
        raise NotExercisedError("resets draw nothing, or steps may do so, too")
    twin = whole_twin_of(record, reset_after_the_end)
    twins = twin.batches[len(way) + 1 :]
    for i in way[-1].ended:
        for step, other in list(zip(later, twins, strict=False))[:_AFTER]:
            if i in step.ended:
                break
            why = "as in an environment whose rows were reset by reset()"
            yield same(obs_of(record, step, i), obs_of(twin, other, i), why, i)
