"""What the statistics in the infos of several episodes show together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sb3compat.conformance.checks.tools.evidence import STEPS, is_close
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Call, Record
from sb3compat.conformance.rows import Episode, by_row
from sb3compat.conformance.values import Value

# So many wrong numbers that one mistake explains are no chance.
_MANY = 5
# So many ends of a kind show what is said of them.
_FEWEST = 3
_BESIDE = "goes on over ends beside others"


@dataclass(frozen=True)
class _Told:
    """A number that the infos tell of an episode.

    Attributes:
        episode: The episode.
        entry: The number.
        own: What it should be.
        mistaken: What it would be by a mistake, for each kind of mistake that may be in it.
    """

    episode: Episode
    entry: Value
    own: float
    mistaken: dict[str, list[float]]

    @property
    def number(self) -> float:
        return float(self.entry.value)

    @property
    def tolerance(self) -> float:
        """How far it may be from what it should be, as sums of floats differ."""
        return 1e-4 + (0 if isinstance(self.own, int) else 1e-4 * _size(self.episode))

    @property
    def is_right(self) -> bool:
        """Whether it is what it should be."""
        return abs(self.number - self.own) <= self.tolerance


def statistics_of_the_episode(record: Record) -> Iterator[Demand]:
    """The return and length in the infos are those of the episode that has ended.

    What counts other steps, such as those of frames that are skipped, or other rewards, such as
    those before they are clipped, may be what the record shows in some episodes. So numbers are
    wrong only if one mistake explains all of them: a counter that goes on over ends, over those
    beside others' or over resets, that lacks the last step, that has the one of the autoreset or
    lacks the one after it, that is set back with other rows, or that is of another row; or if it is
    the last rewards that are lost. Others are noted. Those that are missing at truncations, and at
    no termination, are wrong as well; and so is a length of zero.
    """
    entries = {id(e): _statistics(e) for found in by_row(record) for e in found if e.over}
    known = {key: entry for key, entry in entries.items() if entry is not None}
    if not known or len(known) < len(entries) or not all(map(_are_numbers, known.values())):
        yield from _told_at_truncations(record, entries)
        raise NotExercisedError("the infos have no returns and lengths of all episodes")
    for key, (words, own) in _COUNTED.items():
        told = [
            each
            for found, begun in zip(by_row(record), _begun_by_others(record), strict=True)
            for each in _told(found, known, key, own, begun)
        ]
        if key == "l":
            for each in told:
                yield expect("{0} >= 1", each.entry, should=f"{each.own}, {words}")
        other = sum(not each.is_right for each in told)
        if key == "r" and _without_last_rewards(told):
            words += "; the reward of each last step is 0, unlike those of all other steps"
        elif other and not _is_explained(told):
            record.partly(
                f"'{key}' is not {words} in {other} of {len(told)} episodes: if it tells something "
                "else by design, such as frames or rewards below a wrapper, all is well"
            )
            continue
        for each in told:
            expected = round(each.own, 6)
            condition = f"abs({{0}} - {expected}) <= {each.tolerance:.2g}"
            should = f"{expected}, {words}"
            yield expect(condition, each.entry, should=should, row=each.episode.row)


def _statistics(episode: Episode) -> Value | None:
    """The entry of an episode in the infos of its last step."""
    if episode.record.family == "vec_env":
        info = episode.end.infos[episode.row]
        return info["episode"] if isinstance(info.value.get("episode"), dict) else None
    infos = episode.end.infos
    final = infos.value.get("final_info")
    for place in (infos, *([infos["final_info"]] if isinstance(final, dict) else [])):
        if PRELUDE["tells_statistics"](place.value, episode.row):
            return place.info(episode.row)["episode"]
    return None


def _are_numbers(entry: Value) -> bool:
    try:
        return all(np.isfinite(float(entry.value[key])) for key in _COUNTED)
    except (KeyError, TypeError, ValueError):
        return False


def _told_at_truncations(record: Record, entries: dict[int, Value | None]) -> Iterator[Demand]:
    """Not all ends by termination have an entry, and none by truncation.

    A row without any may have no monitor.
    """
    rows = [[e for e in found if e.over] for found in by_row(record)]
    over = [e for row in rows for e in row if any(entries[id(each)] is not None for each in row)]
    with_it = [e for e in over if entries[id(e)] is not None]
    without = [e for e in over if entries[id(e)] is None]
    kinds = {e.cut for e in with_it}, {e.cut for e in without}
    if kinds == ({False}, {True}) and min(len(with_it), len(without)) >= _FEWEST:
        row, infos = without[-1].row, without[-1].end.infos
        vec_env = record.family == "vec_env"
        places = "{0}, {0}.get('final_info', ())"
        yield expect(
            "'episode' in {0}"
            if vec_env
            else f"any(tells_statistics(told, {row}) for told in ({places}) if told)",
            infos[row] if vec_env else infos,
            what="list({0})",
            should="with 'episode', as where episodes terminate",
            row=row,
        )


def _size(episode: Episode) -> float:
    return math.fsum(map(abs, _rewards(episode)))


def _rewards(episode: Episode) -> list[float]:
    return [_reward(step, episode.row) for step in episode.steps]


def _reward(step: Call, row: int) -> float:
    return float(step.copies["rewards"][row])


_COUNTED: dict[str, tuple[str, Callable[[list[float]], float]]] = {
    "l": ("the number of its steps", len),
    "r": ("the sum of its rewards", math.fsum),
}


def _told(
    found: Sequence[Episode],
    entries: dict[int, Value],
    key: str,
    own: Callable[[list[float]], float],
    begun: Sequence[int],
) -> Iterator[_Told]:
    """What is told under a key of each episode of a row that has ended."""
    since_end = since_reset = 0.0
    before: float | None = None
    for last, episode in zip([None, *found], found, strict=False):
        rewards = _rewards(episode)
        mine = own(rewards)
        since_end += mine
        since_reset = mine + (0 if episode.by == "reset" else since_reset)
        if not episode.over:
            continue
        mistaken = {
            "goes on over ends": [since_reset],
            "with the step of the autoreset": [own([*_reward_of_the_autoreset(episode), *rewards])],
            "without the step after it": [own(rewards[episode.by == "auto" :])],
            "set back with other rows": [own(_rewards_since(episode, begun))],
        }
        if before is not None:  # nobody knows what the row did before the record
            mistaken["goes on over resets"] = [since_end]
            mistaken["goes on over both"] = [before + since_end]
        if episode.by != "reset" and last is not None and last.over and before is not None:
            both = [before + mine] if len(last.end.ended) > 1 else []
            mistaken[_BESIDE] = [mine, *both]
        # A return that lacks the last reward is no mistake: a wrapper around the monitor may give
        # that. Returns of many rows are often equal by chance. After a reset, all rows have one
        # length.
        if own is len:
            mistaken["without the last step"] = [mine - 1]
            mistaken["of another row"] = [*map(own, _rewards_of_others(episode)), mine]
        told = _Told(episode, entries[id(episode)][key], mine, mistaken)
        before, since_end = told.number, 0.0
        yield told


def _begun_by_others(record: Record) -> list[list[int]]:
    """For each row, the numbers of the calls in which another row began an episode."""
    rows = by_row(record)
    return [
        [episode.start.number for k, found in enumerate(rows) if k != i for episode in found]
        for i in range(len(rows))
    ]


def _rewards_since(episode: Episode, begun: Sequence[int]) -> list[float]:
    """The rewards of the steps after the last of these calls that came before its end."""
    last = max((number for number in begun if number < episode.end.number), default=-1)
    return [_reward(step, episode.row) for step in episode.steps if step.number > last]


def _rewards_of_others(episode: Episode) -> Iterator[list[float]]:
    """The rewards of the episodes that other rows are in at its end, up to then."""
    last = episode.end.number
    for other in (e for found in by_row(episode.record) for e in found if e.row != episode.row):
        if other.steps and other.steps[0].number <= last <= other.end.number:
            yield [_reward(step, other.row) for step in other.steps if step.number <= last]


def _reward_of_the_autoreset(episode: Episode) -> list[float]:
    """The reward of the step that began an episode; none if a reset did."""
    if episode.by != "auto":
        return []
    return [_reward(episode.start, episode.row)]


def _without_last_rewards(told: Sequence[_Told]) -> bool:
    """Whether returns are wrong as the last steps have no rewards, which all other steps have."""
    last = [_rewards(each.episode)[-1] for each in told]
    others = [reward for each in told for reward in _rewards(each.episode)[:-1]]
    wrong = len(told) >= _FEWEST and not any(each.is_right for each in told)
    return wrong and not any(last) and len(others) >= STEPS and all(others)


def _is_explained(told: Sequence[_Told]) -> bool:
    """Whether one mistake explains the wrong numbers: a counter that goes on, for example."""
    asked = {kind for each in told for kind in each.mistaken}
    # Some must be right, as those after resets are: each may have a step more by design.
    if sum(each.is_right for each in told) < _FEWEST:
        asked -= {"with the step of the autoreset", "without the step after it"}
    if len({each.own for each in told}) < _FEWEST:
        asked.discard("without the last step")
    # After the end of a row alone, the counter has to be set back.
    if sum(each.mistaken.get(_BESIDE) == [each.own] for each in told) < _FEWEST:
        asked.discard(_BESIDE)
    return any(_explains(kind, told) for kind in asked)


def _explains(kind: str, told: Sequence[_Told]) -> bool:
    """Whether a mistake explains all numbers in which it may be, and many are wrong."""
    some = [each for each in told if kind in each.mistaken]
    return sum(not each.is_right for each in some) >= _MANY and all(
        any(is_close(each.number, number) for number in each.mistaken[kind]) for each in some
    )
