"""Failing programs that run once more."""

from __future__ import annotations

import pytest

from sb3compat.conformance.program.source import PLACEHOLDER
from sb3compat.conformance.run.report import Status
from sb3compat.conformance.run.reproduction import (
    NOT_EVERY_TIME,
    Failure,
    _replay,
    timeline_of,
)
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.subject.settings import Settings
from tests.conformance import tiny
from tests.conformance.runs import here, lost
from tests.conformance.tiny import FloatDones, Noisy, TinyVecEnv


def failure(*lines: str, error: Exception | None = None) -> Failure:
    status: Status = "failed" if error is None else "errored"
    return Failure(status, "", "", ("env = make_env()", *lines), None, error)


def again(failure: Failure) -> bool:
    return _replay(examine(TinyVecEnv), Settings(), failure)[0] is not None


def test_an_assertion_that_fails_again_is_said_in_the_words_of_numpy() -> None:
    program = failure("obs = env.reset()", "assert row(obs, 0) is None, 'row(obs, 0)'")
    found, _ = _replay(examine(TinyVecEnv), Settings(), program)
    assert found is not None
    assert found.line == "assert obs[0] is None, 'obs[0]'"


@pytest.mark.parametrize(
    "lines",
    [
        ("env.reset()", "assert env.num_envs == 2, 'holds'"),
        ("env.no_such_method()", "assert False, 'is not reached'"),
        ("env.reset()", "assert env.no_such_method(), 'raises another exception'"),
        ("assert False, 'another one'", "assert False, 'is not reached'"),
        ("env.reset()", "assert np.testing.assert_equal(1, 2), 'fails within what it calls'"),
    ],
)
def test_a_broken_contract_repeats_only_by_the_assertion_itself(lines: tuple[str, ...]) -> None:
    assert again(failure("env.reset()", "assert env.num_envs == 3, 'fails again'"))
    assert not again(failure(*lines))


def test_an_exception_repeats_only_by_one_of_its_class() -> None:
    gone = "raise OSError('the simulator is gone')"
    assert again(failure("env.reset()", gone, error=OSError()))
    # An environment that is not deterministic may raise it earlier.
    assert again(failure(gone, "env.reset()", error=OSError()))
    assert not again(failure("env.reset()", gone, error=ValueError()))
    assert not again(failure("env.reset()", error=OSError()))
    # The main process sees that a worker has died by one of several exceptions.
    lost = "raise BrokenPipeError"
    assert again(failure(lost, error=EOFError()))
    assert not again(failure(lost, error=OSError()))


class RaisesInAnotherWay(tiny.AtTheEnd):
    """Raises an exception of another class each time."""

    raised = 0

    def at_the_end(self) -> None:
        type(self).raised += 1
        raise type(f"Error{self.raised}", (Exception,), {})


def test_an_environment_that_raises_in_another_way_does_not_fail_every_time() -> None:
    for factory, certain in ((tiny.Raises, True), (RaisesInAnotherWay, False)):
        (result,) = lost(here(factory))
        assert (NOT_EVERY_TIME not in result.message) == certain


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
    name = "dones_bool_array"
    for factory, varies in ((NoisyFloatDones, {("obs",)}), (FloatDones, {()})):
        # No script is run without a factory.
        result = here(factory, only=(name,), make_env=PLACEHOLDER)[name]
        assert {moment.varies for moment in result.timeline} == varies
