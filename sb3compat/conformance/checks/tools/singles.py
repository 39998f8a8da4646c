"""Demands on rows, which are held against their single environments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sb3compat.conformance.checks.tools.evidence import values
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Call, Record
from sb3compat.conformance.replays import Beside, beside, single_of
from sb3compat.conformance.values import Value

# So many steps after an end are ordinary ones, before other things can have made a difference.
_AFTER = 3

_stable = PRELUDE["stable"]


def like_single(each: Beside, got: Value, key: str, why: str) -> Demand:
    """A value is what the single environment returned.

    Args:
        each: The call of the row and that of its single environment.
        got: The value.
        key: The name of the result.
        why: The end of a sentence: why it has to.
    """
    expected = getattr(each.alone, key)
    return expect("close({0}, {1})", got, expected, should=why, row=each.row, like=expected)


def obs_like_single(each: Beside, why: str) -> Demand:
    """The observation of a row is that of its single environment."""
    return like_single(each, each.obs, "obs", why)


def results_like_single(each: Beside, why: str) -> Iterator[Demand]:
    """The reward and the flags of a row are those of its single environment."""
    i, call, alone = each.row, each.call, each.alone
    yield like_single(each, call.rewards[i], "reward", why)
    if each.record.family == "vec_env":
        yield expect(
            "bool({0}) == bool({1} or {2})",
            call.dones[i],
            alone.terminated,
            alone.truncated,
            should=f"{each.alone_is_over}, {why}",
            row=i,
        )
        return
    yield like_single(each, call.terminations[i], "terminated", why)
    yield like_single(each, call.truncations[i], "truncated", why)


def agreeing(found: Iterable[Beside], where: str) -> list[Beside]:
    """These calls of rows and their single environments, where both have agreed before."""
    kept = list(found)
    if not kept:
        raise NotExercisedError(f"no row agrees with its single environment up to {where}")
    return kept


def ends(record: Record) -> list[Beside]:
    """The ends of episodes, of both."""
    found = (each for each in beside(record) if each.kind == "end" and each.sure)
    return agreeing((each for each in found if each.alone_is_over), "the end of an episode")


def starts(record: Record) -> list[Beside]:
    """The starts of episodes that follow others, without a reset of all rows."""
    found = (each for each in beside(record) if each.kind == "start" and each.sure)
    return agreeing((each for each in found if each.episode.by != "reset"), "the end of an episode")


def ends_with_starts(record: Record) -> list[tuple[Beside, Beside]]:
    """The ends of episodes, each with the start of the next one, which may differ."""
    over = {(each.row, each.place): each for each in ends(record)}
    pairs = [(over.get((each.row, each.place - 1)), each) for each in starts(record)]
    return [(end, start) for end, start in pairs if end is not None]


def lasts_like_singles(record: Record) -> Iterator[Demand]:
    """The last observations of episodes are those of the single environments."""
    for each in ends(record):
        yield like_single(each, each.episode.last, "obs", "the last observation of the episode")


def firsts_like_singles(
    record: Record, why: str = "the first of the next episode"
) -> Iterator[Demand]:
    """The first observations of later episodes are those of the single environments."""
    for each in starts(record):
        yield obs_like_single(each, why)


def steps_after_starts(record: Record) -> list[Beside]:
    """The first steps of the episodes that follow others, without a reset of all rows."""
    steps = (each for each in beside(record) if each.kind != "start" and each.episode.by != "reset")
    return [e for e in steps if e.call.number <= e.episode.steps[:_AFTER][-1].number]


def by_ends_before(record: Record) -> Iterator[tuple[Beside, list[Call]]]:
    """The steps of episodes that a reset began, with the ends of any rows up to here since then."""
    over = record.endings
    for each in beside(record):
        if each.kind != "start" and each.episode.by == "reset":
            begin, now = each.episode.start.number, each.call.number
            yield each, [end for end in over if begin < end.number <= now]


# Infos


def stable(each: Beside) -> tuple[Value, Value] | None:
    """The info of the single environment, and that of another one like it; None if there is none.

    What both have is no clock time.
    """
    if each.alone.copies["info"] == {}:  # it has no clock time, and another one takes steps
        return each.alone.info, each.alone.info
    other = single_of(each.record, each.row, "other")
    if other is None or each.place >= len(other.calls) or not other.calls[each.place].complete:
        return None
    return each.alone.info, other.calls[each.place].info


def keys_of(each: Beside) -> set[object]:
    """The keys of an info of the single environment, which another one like it has, too."""
    infos = stable(each)
    return set() if infos is None else set.intersection(*(set(info.value) for info in infos))


def entries_of(each: Beside) -> dict[object, object]:
    """The entries of an info of the single environment, without clock times."""
    infos = stable(each)
    found: dict[object, object] = {} if infos is None else _stable(*values(infos))
    return found


def with_infos_of_singles(record: Record) -> list[Beside]:
    """The calls whose infos are those of the single environment.

    In SAME_STEP mode the infos of an end are those of the reset that follows.
    """
    wrong = "end" if record.mode == "SameStep" else ""
    return [
        each
        for each in beside(record)
        if each.agrees and each.sure and each.kind != wrong and not each.seeded
    ]


def info_carried(each: Beside, got: Value, what: str) -> Iterator[Demand]:
    """An info has all entries of that of the single environment, save for clock times."""
    expected = stable(each)
    if expected is not None:
        should = f"{short(entries_of(each), 80)}, {what}"
        yield expect("carries({0}, stable({1}, {2}))", got, *expected, should=should, row=each.row)
