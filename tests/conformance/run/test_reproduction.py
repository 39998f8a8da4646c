"""Failing programs that run once more."""

from __future__ import annotations

import pytest

from sb3compat.conformance.run.reproduction import _replay, timeline_of
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.subject.settings import Settings
from tests.conformance.runs import here
from tests.conformance.tiny import FloatDones, Noisy, TinyVecEnv


@pytest.mark.parametrize(
    ("call", "last"),
    [
        ("env.reset()", "assert obs[0] is None, 'obs[0]'"),
        ("env.no_such_method()", "assert row(obs, 0) is None, 'row(obs, 0)'"),
    ],
)
def test_the_assertion_stays_if_something_fails_before_it(call: str, last: str) -> None:
    lines = ["env = make_env()", f"obs = {call}", "assert row(obs, 0) is None, 'row(obs, 0)'"]
    found, _ = _replay(examine(TinyVecEnv), Settings(), lines)
    assert found is not None
    assert found.line == last


def test_the_timeline_of_a_program_has_its_last_steps() -> None:
    lines = ["env = make_env()", "obs = env.reset()"]
    lines += ["obs, rewards, dones, infos = env.step([1, 0])"] * 7
    moments = timeline_of(examine(TinyVecEnv), Settings(), lines)
    assert [(m.step, m.row) for m in moments] == [(s, r) for s in range(3, 8) for r in (0, 1)]
    assert [m.step for m in moments if m.ended] == [3, 4, 6]
    assert {m.action for m in moments if m.row == 0} == {"1"}


class NoisyFloatDones(FloatDones, Noisy):
    pass


def test_the_timeline_names_what_differs_each_time() -> None:
    for factory, varies in ((NoisyFloatDones, {("obs",)}), (FloatDones, {()})):
        result = here(factory, only=("dones_bool_array",))["dones_bool_array"]
        assert {moment.varies for moment in result.timeline} == varies
