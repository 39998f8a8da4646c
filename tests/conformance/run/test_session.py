"""Which checks run, after which others, and for how long."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.run.options import Options
from sb3compat.conformance.run.report import Result
from sb3compat.conformance.run.session import Session, _needed
from sb3compat.conformance.subject.capabilities import PROBED
from tests.conformance.found import find_check
from tests.conformance.runs import FEW, IFF_DONE, here, statuses
from tests.conformance.tiny import NoReset, TinyVecEnv


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
    other = next(c.id for c in checks_of("vector_env") if c.id not in FEW)
    with pytest.raises(ValueError, match=f"SB3 VecEnv in `only`, got {other}.*--family vec_env"):
        here(TinyVecEnv, only=(other,))
    assert f"{other} is no check of an SB3 VecEnv" in here(TinyVecEnv, only=(*FEW, other)).notes


def test_a_note_names_the_checks_for_which_the_environment_lacks_something() -> None:
    report = here(TinyVecEnv, only=("rows_are_alike", *FEW), capabilities={"alike_rows": False})
    assert report.notes == (
        "Not checked: rows_are_alike. Such checks need rows that differ only in their seeds.",
    )
    needed = [_needed(name) for name in PROBED]
    assert "an environment that takes seeds" in needed
    assert "an environment that resets the rows under options['reset_mask']" in needed
    assert "sub-environments whose attributes can be reached" in needed


class Outlasts(TinyVecEnv):
    """Its time limit goes on over resets."""

    def reset(self) -> Any:
        times = self.times.copy()
        obs = super().reset()
        self.times = times
        return obs


def test_a_note_says_what_to_pass_if_a_failure_is_by_design() -> None:
    name = "reset_starts_fresh_episodes"
    report = here(Outlasts, only=(name,))
    assert report[name].status == "failed"
    assert report.notes[-1].endswith(" outlast resets: --no-capability repeatable.")


def test_the_failure_before_the_chosen_checks_is_shown_and_counts() -> None:
    report = here(NoReset, only=("dones_bool_array", "truncated_flag_is_bool"))
    failed = [result.check_id for result in report.failures()]
    assert failed == ["reset_returns_obs_only"]
    assert statuses(report) == ["failed", "skipped", "skipped"]
    message = report["dones_bool_array"].message
    assert message == "comes after reset_returns_obs_only, which has failed"
    assert not report.ok


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
        session._clock._before += 1000  # as if that had taken so long
        late = session.result(second)
        (third,) = (check for check in session.checks if check.id == "rows_match_reference")
        assert session.result(third).status == "skipped"  # that is said all the same
    assert late.status == "not_exercised"
    assert re.fullmatch(r"no time was left: .* about \d+ s, with max_seconds=5", late.message)


def test_a_run_without_time_for_any_check_is_no_success() -> None:
    options = Options(max_seconds=5, isolate=False, only=FEW)
    with Session(TinyVecEnv, options=options) as session:
        session._clock._before += 1000
        report = session.report([session.result(check) for check in session.checks])
    assert statuses(report) == ["errored", *["skipped"] * 4]
    assert not report.ok


def test_checks_after_an_expected_failure_are_named_and_fail_a_strict_run() -> None:
    only = ("dones_bool_array", "rewards_shape", "truncated_flag_is_bool")
    known = {"reset_returns_obs_only": "known"}
    note = "reset_returns_obs_only fails as expected, so 3 checks after it could not be run"
    report = here(NoReset, only=only, expected_failures=known)
    assert statuses(report) == ["xfailed", "skipped", "skipped", "skipped"]
    assert report.ok
    assert [note in each for each in report.notes][-1]
    report = here(NoReset, only=only, expected_failures=known, strict=True)
    assert statuses(report) == ["failed", "skipped", "skipped", "skipped"]
    assert note in report.results[0].message
    assert [result.check_id for result in report.failures()] == ["reset_returns_obs_only"]
    # Whoever expects them all knows what they do not know.
    all_known = known | dict.fromkeys(only, "hidden")
    assert here(NoReset, only=only, expected_failures=all_known, strict=True).ok


def test_fewer_verdicts_than_required_are_a_failure() -> None:
    report = here(TinyVecEnv, require_exercised=6)
    assert not report.ok
    assert "5 exercised where 6 are required" in report.summary()
    enough = replace(report, require_exercised=5)
    assert enough.ok
    first, *others = report.results
    assert not replace(enough, results=(replace(first, status="not_exercised"), *others)).ok
