"""Episodes, as a record shows them: the same in both interfaces and all autoreset modes."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.specimens.points import Config, Points
from conformance.specimens.rows_env import MODES, Form, RowsEnv
from sb3compat.conformance.record import Drawn, Op, Record
from sb3compat.conformance.recording import recorded
from sb3compat.conformance.rows import Episode, by_row
from sb3compat.conformance.subject.examine import examine

STEP = Op("step", (Drawn("np.zeros(3, int)"),))


def episodes_of(factory: Any, steps: int) -> list[list[Episode]]:
    """The episodes of a reset, two steps, and another reset with so many steps after it."""
    subject = examine(factory)
    record = Record(subject)

    def ops() -> Any:
        yield from (Op("reset"), STEP, STEP, Op("reset"))
        for _ in range(steps):
            last = record.calls[-1]
            if subject.mode == "Disabled" and last.is_step and last.flags.any():
                yield Op("reset", kwargs={"options": {"reset_mask": last.flags.copy()}})
            yield STEP

    recorded(record, factory(), ops())
    assert record.error is None
    return by_row(record)


def numbers(episode: Episode, k: Any) -> list[int]:
    return [int(value.value[k]) for value in episode.seen]


def form(mode: str) -> RowsEnv:
    ends = ("truncated", "terminated")
    return RowsEnv(Form(mode=mode, kind="counted", lengths=(3, 5), endings=ends, steady=True))


@pytest.mark.parametrize("mode", MODES)
def test_episodes_are_seen_from_their_first_observations_to_their_last(mode: str) -> None:
    found = episodes_of(lambda: form(mode), 20)
    starts = {"SameStep": "auto", "NextStep": "auto", "Disabled": "mask"}
    for row, length in zip(found, (3, 5, 3), strict=True):
        first, second, *later = row
        assert (first.by, first.over, numbers(first, 2)) == ("reset", False, [0, 1, 2])
        assert (second.by, second.over) == ("reset", True)
        assert {episode.by for episode in later} == {starts[mode]}
        for episode in row[1:-1]:
            assert episode.over
            assert episode.cut == (length == 3)
            assert numbers(episode, 2) == list(range(length + 1))


def test_episodes_of_a_vec_env_are_seen_as_well() -> None:
    config = Config(rows=3, lengths=(3,), ends=("truncated",), observation="dict")
    for row in episodes_of(lambda: Points(config), 7):
        assert [episode.by for episode in row] == ["reset", "reset", "auto", "auto"]
        assert [episode.over for episode in row] == [False, True, True, False]
        assert [len(episode.steps) for episode in row] == [2, 3, 3, 1]
        assert all(episode.cut for episode in row if episode.over)
        assert [numbers(episode, "count") for episode in row[1:]] == [[*range(4)]] * 2 + [[0, 1]]
