"""What is found out about an environment before it is checked."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from sb3compat.conformance.subject import pace
from sb3compat.conformance.subject import scout as scouting
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.subject.scout import scout
from sb3compat.conformance.subject.subject import Subject
from tests.conformance.tiny import TinyVecEnv

NOT_TRUNCATED = "no episode ended by truncation"


class Lanes(TinyVecEnv):
    """Ten times the same action ends an episode, if it is the right one; so do 30 steps."""

    right, limit, flag = 1, 30, True

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Discrete(3)
        self.run = np.zeros(self.num_envs, int)

    def step_wait(self) -> Any:
        self.run = np.where(np.asarray(self.actions) == self.right, self.run + 1, 0)
        self.times += 1
        obs = self.observe()
        dones = (self.run >= 10) | (self.times >= self.limit)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(dones):
            cut = bool(self.run[i] < 10) and self.flag
            infos[i] = {"terminal_observation": obs[i].copy(), "TimeLimit.truncated": cut}
            self.times[i] = self.run[i] = obs[i][1] = 0
        return obs, np.ones(self.num_envs, np.float32), dones, infos


class NoLimit(Lanes):
    limit = 10**6


class NoFlag(Lanes):
    flag = False


def ends(found: Subject) -> set[tuple[str, int, bool]]:
    return {(e.actions, e.steps, e.truncated) for e in found.endings}


def all_rows(action: int) -> str:
    return f"np.full((2,), {action}, np.int64)"


def test_ends_of_each_kind_are_kept() -> None:
    found = examine(Lanes)
    assert ends(found) == {
        (all_rows(1), 10, False),
        ("np.stack([env.action_space.sample() for _ in range(2)])", 30, True),
        (all_rows(0), 30, True),
        (all_rows(2), 30, True),
    }
    assert [e.steps for e in found.endings] == [10, 30, 30, 30]
    assert found.notes == ()


def test_an_end_under_one_action_only() -> None:
    found = examine(NoLimit)
    assert ends(found) == {(all_rows(1), 10, False)}
    assert [NOT_TRUNCATED in note for note in found.notes] == [True]


def test_the_search_goes_on_while_no_end_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Limited(Lanes):
        right = 3  # which no row can take

    monkeypatch.setattr(pace, "_STEPS", ((math.inf, 20),))
    assert [ending.steps for ending in examine(Limited).endings] == [30]


def test_a_note_says_that_no_end_was_a_truncation() -> None:
    # Or that it was not told: the flag may be what is wrong.
    assert [NOT_TRUNCATED in note for note in examine(NoFlag).notes] == [True]


class TruncatesLater(Lanes):
    """The first end after a reset is none by truncation."""

    def reset(self) -> Any:
        self.flag = False
        return super().reset()

    def step_wait(self) -> Any:
        result = super().step_wait()
        self.flag |= result[2].any()
        return result


def test_a_truncation_after_the_first_end_counts() -> None:
    found = examine(TruncatesLater)
    assert not any(ending.truncated for ending in found.endings)
    assert found.truncates
    assert found.notes == ()


def test_each_policy_has_its_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    class Slow(NoLimit):
        def step_wait(self) -> Any:
            nonlocal now
            now += 0.1
            return super().step_wait()

    found = examine(Slow, seconds=None)
    monkeypatch.setattr(scouting, "time", SimpleNamespace(perf_counter=lambda: now))
    assert ends(scout(found, 10.0)) == {(all_rows(1), 10, False)}
    # What takes long is left out where there is something else.
    now, Slow.limit = 0.0, 20
    assert ends(scout(found, 10.0)) == {(all_rows(1), 10, False)}
    now, Slow.right = 0.0, -1
    assert {steps for _, steps, _ in ends(scout(found, 10.0))} == {20}


class Heavy(TinyVecEnv):
    """Takes some time to make, by a clock of its own."""

    now = 0.0

    def __init__(self) -> None:
        super().__init__()
        Heavy.now += 0.5


class Remembers(Heavy):
    """Goes on with its counter after a reset."""

    def reset(self) -> Any:
        self.total = getattr(self, "total", 0) + 1
        return super().reset() + self.total


@pytest.mark.parametrize(("factory", "shared"), [(Heavy, True), (Remembers, False)])
def test_instances_are_shared_if_a_reset_brings_them_back(
    factory: Any, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(perf_counter=lambda: Heavy.now)
    monkeypatch.setattr(scouting, "time", clock)
    found = examine(factory)
    assert found.make_seconds == 0.5
    assert found.shared == shared


def test_instances_that_are_quick_to_make_are_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scouting, "time", SimpleNamespace(perf_counter=lambda: 0.0))
    assert not examine(TinyVecEnv).shared
