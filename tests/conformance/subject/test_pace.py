"""Budgets of programs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.subject.pace import (
    MADE_AHEAD,
    MOST_PROGRAMS,
    makes_of,
    programs_of,
    rough,
    shrinks_of,
    steps_of,
)
from sb3compat.conformance.subject.subject import Ending
from tests.conformance.tiny import TinyVecEnv


def test_times_count_by_their_order_of_magnitude() -> None:
    assert rough(0.13) == rough(0.17) == rough(0.25) == 0.25
    assert rough(0.0) == 0.0
    assert rough(20) == 32


def test_a_slow_environment_gets_fewer_programs() -> None:
    names = ("make_seconds", "reset_seconds", "step_seconds")
    quick: dict[str, Any] = dict.fromkeys(names, 0.0)
    subject = replace(examine(TinyVecEnv), shared=False, **quick)
    assert programs_of(subject) == MOST_PROGRAMS
    for name in names:
        times = (0.0, 0.001, 0.01, 0.1, 1.0, 1000.0)
        counts = [programs_of(replace(subject, **{name: seconds})) for seconds in times]
        assert counts == sorted(counts, reverse=True)
        assert counts[-1] == 1


def test_long_episodes_of_a_quick_environment_get_fewer_programs() -> None:
    quick = replace(examine(TinyVecEnv), shared=True, reset_seconds=0.0, step_seconds=1e-5)
    episodes = [(Ending("", "0", 0, steps),) for steps in (20, 200, 1000, 10_000)]
    counts = [programs_of(replace(quick, endings=ending)) for ending in episodes]
    assert counts[:2] == [MOST_PROGRAMS] * 2
    assert MOST_PROGRAMS > counts[2] > counts[3] == 1


def test_the_last_search_for_an_end_takes_longer() -> None:
    assert [steps_of(0.004), steps_of(0.004, patient=True)] == [300, 2000]
    assert steps_of(0.0, patient=True) == steps_of(0.0) == steps_of(1e-9)


def test_few_instances_are_made_where_used_ones_will_not_do() -> None:
    subject = replace(examine(TinyVecEnv), shared=True)
    assert [makes_of(replace(subject, make_seconds=s)) for s in (0.0625, 0.125, 8)] == [8, 4, 1]
    assert makes_of(replace(subject, shared=False)) == math.inf
    assert makes_of(replace(subject, forked=True, make_seconds=8)) == MADE_AHEAD - 1


def test_failures_shrink_less_where_instances_take_long_to_make() -> None:
    subject = examine(TinyVecEnv)
    tries = [shrinks_of(replace(subject, make_seconds=s), 25) for s in (0.0, 0.0625, 1, 16)]
    assert tries == [288, 128, 8, 1]
    assert shrinks_of(replace(subject, make_seconds=0.0625), 1) == 8
