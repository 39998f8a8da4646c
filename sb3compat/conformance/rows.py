"""The episodes of a record, row by row: one form for both interfaces and all autoreset modes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from gymnasium import spaces

from sb3compat.conformance.record import Call, Record
from sb3compat.conformance.values import Value

Start = Literal["reset", "mask", "auto"]


@dataclass
class Episode:
    """One episode of a row, as far as the record goes.

    Attributes:
        record: The record.
        row: The row.
        start: The call that returned its first observation. In SAME_STEP mode, and of a `VecEnv`,
            that is the last step of the episode before; in NEXT_STEP mode the step after that.
        by: How it began: by a reset of all rows, by one under a mask, or by itself.
        steps: Its steps; a step that resets the row instead is none.
        over: Whether it has ended.
    """

    record: Record
    row: int
    start: Call
    by: Start
    steps: list[Call] = field(default_factory=list)
    over: bool = False

    @property
    def end(self) -> Call:
        """Its last step."""
        return self.steps[-1]

    @property
    def before_end(self) -> list[Call]:
        """Its steps, but for the one that ended it."""
        return self.steps[:-1] if self.over else self.steps

    @property
    def cut(self) -> bool:
        """Whether it was truncated, and not terminated."""
        if not self.over:
            return False
        if self.record.family == "vec_env":
            return bool(self.end.copies["infos"][self.row].get("TimeLimit.truncated", False))
        flags = (self.end.copies[name][self.row] for name in ("truncations", "terminations"))
        truncated, terminated = map(bool, flags)
        return truncated and not terminated

    @cached_property
    def first(self) -> Value:
        """The first observation."""
        return obs_of(self.record, self.start, self.row)

    @cached_property
    def last(self) -> Value:
        """The last observation."""
        return last_of(self.record, self.end, self.row)

    @cached_property
    def seen(self) -> list[Value]:
        """Its observations, from the first up to the last."""
        between = [obs_of(self.record, call, self.row) for call in self.before_end]
        return [self.first, *between, *([self.last] if self.over else [])]


def last_of(record: Record, end: Call, i: int) -> Value:
    """The last observation of row i, of the step that ended its episode."""
    if record.family == "vec_env":
        return end.infos[i]["terminal_observation"]
    if record.mode == "SameStep":
        return end.infos["final_obs"].row(i)
    return obs_of(record, end, i)


def obs_of(record: Record, call: Call, i: int) -> Value:
    """Row i of the observations of a call."""
    if record.family == "vector_env":
        space = record.attribute("single_observation_space").value
        if isinstance(space, spaces.Dict | spaces.Tuple):
            return call.obs.part(space, i)
        return call.obs[i]
    return call.obs.row(i)


def info_of(record: Record, call: Call, i: int) -> Value:
    """The info of row i of a call."""
    if record.family == "vector_env":
        return call.infos.info(i)
    return call.reset_infos[i] if call.op.method == "reset" else call.infos[i]


def info_of_end(record: Record, episode: Episode) -> Value:
    """The info of the last step of an episode."""
    infos = episode.end.infos
    if record.mode == "SameStep" and "final_info" in infos.value:
        return infos["final_info"].info(episode.row)
    return info_of(record, episode.end, episode.row)


def episodes(record: Record) -> list[Episode]:
    """The episodes of all rows, in the order in which they began."""
    found: list[Episode] = []
    running: dict[int, Episode] = {}
    waiting: set[int] = set()
    mode = record.mode if record.family == "vector_env" else "SameStep"

    def begin(call: Call, i: int, by: Start) -> None:
        running[i] = Episode(record, i, call, by)
        found.append(running[i])
        waiting.discard(i)

    for call in record.batches:
        if not call.is_step:
            for i, by in _reset(call, record):
                begin(call, i, by)
            continue
        ended = set(call.ended)
        for i in record.rows:
            if i in waiting and mode == "NextStep":
                begin(call, i, "auto")
            elif i in running:
                running[i].steps.append(call)
                if i in ended:
                    running.pop(i).over = True
                    waiting.add(i)
                    if mode == "SameStep":
                        begin(call, i, "auto")
    return found


def _reset(call: Call, record: Record) -> Iterator[tuple[int, Start]]:
    """The rows that a reset has begun anew."""
    if call.mask is None:
        yield from ((i, "reset") for i in record.rows)
    else:
        yield from ((int(i), "mask") for i in np.flatnonzero(call.mask))


def by_row(record: Record) -> list[list[Episode]]:
    """The episodes of each row of a complete record."""
    if "by_row" not in record.memo:
        found = episodes(record)
        record.memo["by_row"] = [[each for each in found if each.row == i] for i in record.rows]
    rows: list[list[Episode]] = record.memo["by_row"]
    return rows
