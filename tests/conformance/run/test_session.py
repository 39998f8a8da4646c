"""Which checks run, after which others, and for how long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sb3compat.conformance.checks.catalogue import checks_of, find_check
from sb3compat.conformance.run.options import Options
from sb3compat.conformance.run.report import Result
from sb3compat.conformance.run.search import run_check
from sb3compat.conformance.run.session import MAX_SECONDS, Session, _needed
from sb3compat.conformance.run.settings import Settings
from sb3compat.conformance.subject.examine import examine
from tests.conformance.runs import FEW, IFF_DONE, here, statuses
from tests.conformance.tiny import TinyVecEnv


@pytest.mark.parametrize("bounds", [True, False])
def test_wrong_bounds_hide_no_other_checks(bounds: bool) -> None:
    class Outside(TinyVecEnv):
        def reset(self) -> Any:
            return super().reset() + 1000 if bounds else super().reset()[:, None]

    of_bounds = ("reset_obs_in_space", "step_obs_in_space", "terminal_observation_in_space")
    others = ("obs_dtype_matches_space", "obs_after_done_is_reset_obs")
    report = here(Outside, only=(*of_bounds, *others))
    assert report["reset_obs_in_space"].status == "failed"
    assert [report[name].status for name in of_bounds[1:]] == ["skipped", "skipped"]
    assert {report[name].status == "skipped" for name in others} == {not bounds}
    assert report["reset_obs_in_space"].finding.bounds == bounds


def test_too_few_actions_fail_one_check_only() -> None:
    report = here(TinyVecEnv, only=("wrong_action_count_rejected", "close_after_error"))
    assert report["wrong_action_count_rejected"].status == "failed"
    assert report["close_after_error"].status == "skipped"


def test_checks_of_the_other_interface_are_left_out() -> None:
    other = next((c.id for c in checks_of("vector_env") if c.id not in FEW), None)
    if other is None:
        pytest.skip("there are no checks of a VectorEnv")
    with pytest.raises(ValueError, match=f"checks of an SB3 VecEnv in `only`, got {other}"):
        here(TinyVecEnv, only=(other,))
    assert f"{other} is no check of an SB3 VecEnv" in here(TinyVecEnv, only=(*FEW, other)).notes


def test_a_check_runs_after_those_it_comes_after() -> None:
    report = here(Threes, only=("dones_bool_array",))
    assert report["dones_bool_array"].status == "skipped"
    message = report["dones_bool_array"].message
    assert message == "comes after step_returns_four, which has failed"


def test_the_failure_before_the_chosen_checks_is_shown_and_counts() -> None:
    report = here(Threes, only=("dones_bool_array", "truncated_flag_is_bool"))
    failed = [result.check_id for result in report.failures()]
    assert failed == ["step_returns_four"]
    assert statuses(report) == ["failed", "skipped", "skipped"]
    assert not report.ok
    assert here(TinyVecEnv, only=("dones_bool_array",)).ok


def test_patterns_choose_checks_and_leave_checks_out() -> None:
    report = here(TinyVecEnv, only=("dones_*", IFF_DONE), skip=("*_array",))
    assert [result.check_id for result in report.results] == ["dones_shape", IFF_DONE]
    assert "left out, as asked: dones_bool_array" in " ".join(report.notes)
    with pytest.raises(ValueError, match=r"in `only`, got dones_\* without \* in `skip`"):
        here(TinyVecEnv, only=("dones_*",), skip=("*",))


def test_a_check_that_was_left_out_does_not_run_before_others() -> None:
    only, before = ("close_after_error",), ("wrong_action_count_rejected",)
    assert here(TinyVecEnv, only=only)["close_after_error"].status == "skipped"
    report = here(TinyVecEnv, only=only, skip=before)
    assert [result.check_id for result in report.results] == ["close_after_error"]
    assert statuses(report) != ["skipped"]


class Threes(TinyVecEnv):
    def step_wait(self) -> Any:
        return super().step_wait()[:3]


def test_a_skip_names_the_missing_capability() -> None:
    # Also where what it comes after is skipped.
    before = find_check("vec_env", "dones_bool_array")
    check = replace(find_check("vec_env", IFF_DONE), needs=("render",), after=(before.id,))
    with Session(TinyVecEnv, options=Options(only=FEW, isolate=False)) as session:
        session._results[before.id] = Result.of(before, "skipped")
        result = session.result(check)
    assert (result.status, result.message) == ("skipped", "needs the capability 'render'")


def test_checks_after_the_time_limit_are_not_exercised() -> None:
    with Session(TinyVecEnv, options=Options(max_seconds=5, isolate=False)) as session:
        first, second = session.checks[:2]
        assert session.result(first).status == "passed"
        session._begin -= 1000  # as if that had taken so long
        late = session.result(second)
        (third,) = (check for check in session.checks if check.id == "rows_match_reference")
        assert session.result(third).status == "skipped"  # that is said all the same
    assert late.status == "not_exercised"
    assert late.message == "no time was left: all checks take about 50 s, with max_seconds=5"


class Late(TinyVecEnv):
    """Counts the instances that have been reset for the first time."""

    started = 0

    def reset(self) -> Any:
        Late.started += not hasattr(self, "_seen")
        self._seen = True
        return super().reset()


def test_a_slow_environment_gets_the_time_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = examine(TinyVecEnv)
    assert _needed(subject, 50) == MAX_SECONDS
    assert _needed(subject, 1) < MAX_SECONDS / 5  # else a hang of one check takes minutes
    assert _needed(replace(subject, make_seconds=20), 10) >= 10 * 20
    assert _needed(replace(subject, step_seconds=20), 10) >= 10 * 20

    # What the first reset or step takes belongs to making one.
    now = iter(range(10**9))
    monkeypatch.setattr("time.perf_counter", lambda: 1000.0 * Late.started + 1e-6 * next(now))
    assert examine(Late).make_seconds >= 1000
    monkeypatch.undo()
    # However slow, a check gets one program.
    slow = replace(subject, make_seconds=1000)
    result = run_check(find_check("vec_env", "rewards_shape"), slow, Settings(seconds=0.01))
    assert (result.status, result.examples) == ("passed", 1)
