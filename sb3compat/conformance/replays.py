"""A row of a record once more: its single environment, led through the same episodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Call, Op, Record
from sb3compat.conformance.rows import Episode, by_row, obs_of
from sb3compat.conformance.values import Value
from sb3compat.conformance.variants import action_of, seed_before, seed_of

# The most steps of a single environment, and the most time for them, by the time of a step.
_MOST_STEPS, _MOST_SECONDS = 500, 1.0
# So many steps into the next episode, where a single one takes more than that.
_INTO_THE_NEXT = 10
close, equal = map(PRELUDE.__getitem__, ("close", "equal"))


def single_of(record: Record, i: int, name: str = "single") -> Record | None:
    """The single environment of a row, led through the same episodes; None if it is unknown.

    Args:
        record: The record of the environment.
        i: The row.
        name: What scripts call it; another name is for another one like it.
    """
    if record.subject.missing(("reference", "seeding")):
        return None
    return record.other((i, name), partial(replayed, record, i), name, i)


def replayed(record: Record, i: int, single: Record) -> Iterator[Op]:
    """The calls that lead a single environment through the episodes of a row.

    They end at a reset of all rows after a step, and where one of the two ends an episode and the
    other one goes on.

    Args:
        record: The record of the environment.
        i: The row.
        single: What the calls so far have returned.
    """
    if seed_of(record) is None:
        return
    left = _affordable(record)
    for episode in by_row(record)[i]:
        if episode.by == "reset" and episode.start.step:
            return
        seed = None if episode.by == "auto" else seed_before(record, episode.start)
        yield Op("reset", kwargs={} if seed is None else {"seed": seed + i})
        for step in episode.steps[:left]:
            yield Op("step", (action_of(record, step.copies["actions"], i),))
            if not single.calls[-1].complete or _is_over(single.calls[-1]) != (i in step.ended):
                return
        left -= len(episode.steps)
        if left <= 0:
            return


def _affordable(record: Record) -> int:
    subject = record.subject
    longest = max((ending.steps for ending in subject.endings), default=0)
    affordable = int(_MOST_SECONDS / max(subject.step_seconds, 1e-6))
    return min(max(affordable, 3 * longest), max(_MOST_STEPS, longest + _INTO_THE_NEXT))


def _is_over(alone: Call) -> bool:
    return bool(alone.copies["terminated"] or alone.copies["truncated"])


@dataclass(frozen=True)
class Beside:
    """A call of a row and the one of its single environment, which have agreed so far.

    Attributes:
        record: The record of the environment.
        row: The row.
        kind: Whether the episode starts, goes on or ends. In SAME_STEP mode, and of a `VecEnv`, one
            call is the end of an episode and the start of the next.
        episode: The episode of the row.
        call: The call of the environment.
        alone: The call of the single environment.
        place: The number of calls of the single environment before it.
        sure: Whether the single environment draws the same random numbers, as far as starts show:
            if all of them are alike, they show nothing.
    """

    record: Record
    row: int
    kind: Literal["start", "step", "end"]
    episode: Episode
    call: Call
    alone: Call
    place: int
    sure: bool

    @property
    def seeded(self) -> bool:
        """Whether this is a start with a seed."""
        return self.alone.op.kwargs.get("seed") is not None

    @property
    def obs(self) -> Value:
        """The observation of the row."""
        return obs_of(self.record, self.call, self.row)

    @property
    def alone_is_over(self) -> bool:
        """Whether the episode of the single environment ends."""
        return self.kind != "start" and _is_over(self.alone)

    @property
    def agrees(self) -> bool:
        """Whether both do the same, save for observations at ends."""
        try:
            same = self.kind == "end" or _same(self.obs.value, self.alone.obs.value)
        except (IndexError, KeyError, TypeError):  # another structure, which a check reports
            return False
        if self.kind == "start":
            return same
        rewards = np.ravel(self.call.copies["rewards"])
        if rewards.size == self.record.num_envs:  # otherwise a check reports it
            same = same and _same(rewards[self.row], self.alone.copies["reward"])
        return same and self.alone_is_over == (self.kind == "end")


def _same(a: object, b: object) -> bool:
    return bool(equal(a, b) or close(a, b))


def beside(record: Record) -> list[Beside]:
    """What rows and their single environments do, as long as both agree.

    The first difference of a row is the last of it. Where a row does not even begin as its single
    environment does, the others are left alone, too: one generator for all rows would suit the
    first of them.
    """
    if "beside" not in record.memo:
        rows = [list(_beside(record, i)) for i in record.rows]
        if not all(row and row[0].agrees for row in rows):
            rows = [row[:1] for row in rows]
        record.memo["beside"] = [each for row in rows for each in row]
    found: list[Beside] = record.memo["beside"]
    return found


def _beside(record: Record, i: int) -> Iterator[Beside]:
    single = single_of(record, i)
    calls = [] if single is None else [call for call in single.calls if call.complete]
    pairs = [(episode, call) for episode in by_row(record)[i] for call in _calls(episode)]
    start, sure = None, True
    for place, ((episode, call), alone) in enumerate(zip(pairs, calls, strict=False)):
        kind: Literal["start", "step", "end"] = "end" if i in call.ended else "step"
        if alone.op.method == "reset":
            kind = "start"
            sure = sure or alone.op.kwargs.get("seed") is not None
        found = Beside(record, i, kind, episode, call, alone, place, sure)
        yield found
        if not found.agrees:
            return
        if kind == "start":
            sure = found.seeded or (sure and not _same(alone.copies["obs"], start))
            start = alone.copies["obs"]


def _calls(episode: Episode) -> tuple[Call, ...]:
    return (episode.start, *episode.steps)
