"""One check: exceptions, failures that do not repeat, situations that no program reaches."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from sb3compat.conformance import (
    check_vec_env,
)
from sb3compat.conformance.checks.catalogue import find_check
from sb3compat.conformance.play import Play
from sb3compat.conformance.run.options import Options
from sb3compat.conformance.run.session import Session
from tests.conformance import tiny
from tests.conformance.runs import FEW, IFF_DONE, checked, here, lost
from tests.conformance.tiny import TinyVecEnv


class Exits(tiny.AtTheEnd):
    def at_the_end(self) -> None:
        sys.exit("the simulator says goodbye")


class Verbose(tiny.AtTheEnd):
    def at_the_end(self) -> None:
        raise ValueError("x" * 10**6)


class OneAtATime(TinyVecEnv):
    """Takes something that there is only one of."""

    taken = False

    def __init__(self) -> None:
        super().__init__()
        if OneAtATime.taken:
            raise OSError("address already in use")
        OneAtATime.taken = True

    def close(self) -> None:
        OneAtATime.taken = False


def test_an_exception_of_the_environment_has_its_own_traceback() -> None:
    report = here(tiny.Raises)
    assert lost(report)
    result = lost(report)[0]
    assert result.message.endswith(" raised OSError: the simulator is gone")
    # The traceback begins in the user's code.
    lines = result.trace.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "tiny.py" in lines[1]
    assert lines[-1] == "OSError: the simulator is gone"


def test_sys_exit_in_a_step_is_an_exception() -> None:
    report = here(Exits)
    assert "raised SystemExit: the simulator says goodbye" in lost(report)[0].message


def test_megabytes_in_an_exception_are_cut() -> None:
    result = lost(here(Verbose))[0]
    assert len(result.message) < 3000
    assert len(result.trace) < 30_000
    assert "ValueError: xxx" in result.trace


def test_a_check_of_endings_needs_an_ending() -> None:
    report = here(tiny.Endless)
    assert report[IFF_DONE].status == "not_exercised"
    assert report[IFF_DONE].message == "no episode ended"
    assert report.ok


def test_a_failure_that_does_not_repeat_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(only=FEW, isolate=False)
    with Session(tiny.Flaky, options=options) as session:
        *others, last = session.checks
        before = [check for check in session.applicable if check.id in last.after]
        assert {session.result(check).status for check in [*others, *before]} == {"passed"}
        monkeypatch.setattr(tiny.Flaky, "forgets", True)
        result = session.result(last)
    assert (result.check_id, result.status) == (IFF_DONE, "failed")
    assert "not every time: the same program has passed when it was run again" in result.message


def test_an_exception_of_the_check_costs_that_check_only() -> None:
    def fails(play: Play) -> None:
        play.make()
        _ = {}["no such key"]

    check = replace(find_check("vec_env", IFF_DONE), function=fails)
    with Session(TinyVecEnv, options=Options(only=FEW, isolate=False)) as session:
        result = session.result(check)
    assert result.status == "errored"
    assert result.message.startswith("the check itself raised KeyError: 'no such key'.")
    assert result.message.endswith(". This is a mistake in sb3compat: please report it.")
    assert "in fails" in result.trace
    assert "env = make_env()" in result.reproduction


def test_checks_of_two_instances_are_not_exercised_where_only_one_can_exist() -> None:
    report = check_vec_env(
        OneAtATime,
        on_fail=None,
        max_seconds=2,
        isolate=False,
        expected_failures={"subclasses_vec_env": "as without SB3"},
    )
    expected = "the check needs a second instance beside the first, which cannot be made"
    why = {r.check_id: r.message for r in report.results if r.message.startswith(expected)}
    assert report.ok
    assert {r.status for r in report.results if r.check_id in why} == {"not_exercised"}
    assert why["same_seed_same_trajectory"] == f"{expected}: OSError: address already in use"
    # Those that can do with one are exercised.
    assert not {name for name in why if name.startswith(("works_under", "trains", "outputs"))}
    report = checked(
        TinyVecEnv,
        only=("same_seed_same_trajectory",),
        capabilities={"two_at_once": False},
        isolate=False,
    )
    assert report.results[0].message == f"{expected}, as declared"
