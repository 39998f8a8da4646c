"""What the statistics in the infos of several episodes show together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Record
from sb3compat.conformance.rows import Episode, by_row
from sb3compat.conformance.values import Value

# So many wrong numbers that one mistake explains are no chance.
_MANY = 5


@dataclass(frozen=True)
class _Told:
    """A number that the infos tell of an episode.

    Attributes:
        episode: The episode.
        entry: The number.
        own: What it should be.
        since_end: The same of all steps of the row since the end before, also of those that a reset
            cut off.
        since_reset: The same of all steps of the row since the last reset of all rows.
    """

    episode: Episode
    entry: Value
    own: float
    since_end: float
    since_reset: float

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
    wrong only if a counter that goes on over ends or resets explains all of them.

    Raises:
        NotExercisedError: If it cannot be told.
    """
    entries = {id(e): _statistics(e) for found in by_row(record) for e in found if e.over}
    known = {key: entry for key, entry in entries.items() if entry is not None}
    if not known or len(known) < len(entries) or not all(map(_are_numbers, known.values())):
        raise NotExercisedError("the infos have no returns and lengths of all episodes")
    for key, (words, own) in _COUNTED.items():
        rows = [list(_told(found, known, key, own)) for found in by_row(record)]
        told = [each for row in rows for each in row]
        if not (all(each.is_right for each in told) or _goes_on(rows)):
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


def _length(episode: Episode) -> int:
    return len(episode.steps)


def _return(episode: Episode) -> float:
    return math.fsum(_rewards(episode))


def _size(episode: Episode) -> float:
    return math.fsum(map(abs, _rewards(episode)))


def _rewards(episode: Episode) -> list[float]:
    return [float(step.copies["rewards"][episode.row]) for step in episode.steps]


_COUNTED: dict[str, tuple[str, Callable[[Episode], float]]] = {
    "l": ("the number of its steps", _length),
    "r": ("the sum of its rewards", _return),
}


def _told(
    found: Sequence[Episode], entries: dict[int, Value], key: str, own: Callable[[Episode], float]
) -> Iterator[_Told]:
    """What is told under a key of each episode of a row that has ended."""
    since_end = since_reset = 0.0
    for episode in found:
        mine = own(episode)
        since_end += mine
        since_reset = mine + (0 if episode.by == "reset" else since_reset)
        if episode.over:
            yield _Told(episode, entries[id(episode)][key], mine, since_end, since_reset)
            since_end = 0.0


def _goes_on(rows: Sequence[Sequence[_Told]]) -> bool:
    """Whether a counter that goes on over ends, or resets, or both, explains many wrong numbers."""
    # Nobody knows what a row did before the record.
    later = [pair for row in rows for pair in pairwise(row)]
    over_ends = [(each, each.since_reset) for row in rows for each in row]
    over_resets = [(each, each.since_end) for _, each in later]
    over_both = [(each, before.number + each.since_end) for before, each in later]
    return any(
        sum(not each.is_right for each, _ in some) >= _MANY
        and all(math.isclose(each.number, n, rel_tol=1e-4, abs_tol=1e-4) for each, n in some)
        for some in (over_ends, over_resets, over_both)
    )
