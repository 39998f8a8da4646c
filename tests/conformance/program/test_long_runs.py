"""The helpers of reproductions that play whole episodes, or look at what a process has."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from conformance.specimens.points import Config, Points
from conformance.specimens.rows_env import MODES, Form, RowsEnv
from sb3compat.conformance.program.script import PRELUDE

belongings, episodes_of, growth, kept, lasting, leaps, left_over = map(
    PRELUDE.__getitem__,
    ("belongings", "episodes_of", "growth", "kept", "lasting", "leaps", "left_over"),
)


def counted(mode: str) -> RowsEnv:
    ends = ("truncated", "terminated")
    return RowsEnv(Form(mode=mode, kind="counted", lengths=(3, 5), endings=ends, steady=True))


@pytest.mark.parametrize("mode", MODES)
def test_episodes_are_seen_from_their_first_observations_to_their_last(mode: str) -> None:
    env = counted(mode)
    seen = episodes_of(env, lambda: np.zeros(3, int), rounds=2, most=20, mode=mode, resets=2)
    assert [len(row["starts"]) for row in seen] == [4, 4, 4]
    for row, length in zip(seen, (3, 5, 3), strict=True):
        assert {obs[2] for obs in (*row["starts"], *row["firsts"])} == {0}
        assert {(before[2], last[2]) for before, last, _ in row["ends"]} == {(length - 1, length)}
        assert {after[2] - before[2] for before, after in row["steps"]} == {1}
        assert {cut for _, _, cut in row["ends"]} == {length == 3}
        assert len(row["ends"]) == len(row["firsts"]) >= 2


def test_episodes_of_a_vec_env_are_seen_as_well() -> None:
    env = Points(Config(rows=2, lengths=(3,), ends=("truncated",), observation="dict"))
    seen = episodes_of(env, lambda: [0, 1], rounds=3, most=20)
    for row in seen:
        assert {int(obs["count"]) for obs in (*row["starts"], *row["firsts"])} == {0}
        # One end in each round, and three in every other one.
        assert [(int(a["count"]), int(b["count"]), cut) for a, b, cut in row["ends"]] == [
            (2, 3, True)
        ] * 5
        assert row["lengths"] == [(3, True), (3, True), (3, False), (3, False), (3, True)]


def test_what_all_starts_share_must_not_be_missing_everywhere() -> None:
    starts = [{"x": np.array([0, k]), "n": 1} for k in range(5)]
    assert kept(starts, [{"x": np.array([0, 9]), "n": 1}])
    assert kept(starts, [{"x": np.array([1, 9]), "n": 1}, starts[0]])
    assert not kept(starts, [{"x": np.array([1, 9]), "n": 1}] * 2)
    assert not kept(starts, [{"x": np.array([0, 9]), "n": 2}])


def test_sequences_are_compared_as_far_as_they_go() -> None:
    starts = [(np.ones(2), *map(np.array, range(k))) for k in range(3)]
    assert kept(starts, [(np.ones(2), np.array(7))])
    assert kept(starts, [(np.ones(3),)])
    assert not kept(starts, [(np.zeros(2), np.array(7))])


def test_episodes_last_unless_all_later_ones_end_at_once() -> None:
    assert not lasting([(3, True), (1, False), (1, False)])
    assert lasting([(3, True), (1, False), (2, False)])
    assert lasting([(3, True), (1, True), (1, False)])


def steps(*moves: float) -> list[Any]:
    return [(np.array([0.0, 5.0]), np.array([move, 5.0])) for move in moves]


@pytest.mark.parametrize(
    ("last", "leap"), [([1.0, 5], False), ([9.0, 5], True), ([1.0, 6], False), ([-9.0, 6], True)]
)
def test_a_leap_is_longer_than_any_step_in_what_always_moves(last: list[float], leap: bool) -> None:
    ends = [
        (np.array([0.0, 5.0]), np.array(last, float), True),
        (np.zeros(2), np.full(2, 99.0), False),
    ]
    assert leaps(steps(1, -1, 0.5), ends) is leap


def test_an_entry_that_has_often_stood_still_may_be_a_flag() -> None:
    ends = [(np.array([0.0, 5.0]), np.array([99.0, 5]), True)]
    assert not leaps(steps(1, 0, 1, 1), ends)


def test_threads_are_left_over_until_they_end() -> None:
    before = belongings()
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    held = belongings() - before
    assert left_over(held, 0) == [f"thread {thread.name} ({thread.ident})"]
    done.set()
    assert left_over(held, 30) == []


class Keeps(Points):
    kept: list[Any]

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        self.kept.append(np.zeros(200))
        return super().end(i, last, info)


def test_growth_is_in_bytes_for_each_end() -> None:
    config = Config(rows=2, lengths=(2,))
    env = Keeps(config)
    env.kept = []
    env.reset()
    assert min(growth(env, lambda: [0, 1], 20, 40)) > 1600
    env = Points(config)
    env.reset()
    assert max(growth(env, lambda: [0, 1], 20, 40)) < 400
