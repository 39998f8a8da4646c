"""A failure counts only if its script shows it in a Python of its own."""

from __future__ import annotations

from typing import Any

import pytest

from sb3compat.conformance.run.fresh import confirmed, rerun
from sb3compat.conformance.run.report import Result
from sb3compat.conformance.run.reproduction import NOT_EVERY_TIME, OWN_MISTAKE
from tests.conformance.runs import IFF_DONE, checked
from tests.conformance.tiny import Worn


def failure(script: str, status: Any = "failed", message: str = "x=1, but should be 2") -> Result:
    return Result("it", status, "error", message=message, reproduction=script)


@pytest.mark.parametrize(
    ("script", "expected", "verdict"),
    [
        ("assert False, 'x=1'", "AssertionError", "fails"),
        ("raise ValueError('x')", "AssertionError", "other"),
        ("raise ValueError('x')", "env.reset() raised ValueError: x", "fails"),
        ("pass", "AssertionError", "passes"),
        ("import os\nos._exit(7)", "crashed: the process has died with exit code 7", "fails"),
        (
            "import os\nos.kill(os.getpid(), 11)",
            "crashed: the process has died by SIGSEGV",
            "fails",
        ),
        ("import time\ntime.sleep(1000)", "timeout: no answer within 30 s", "fails"),
    ],
)
def test_a_script_fails_in_the_way_that_was_expected_or_not(
    script: str, expected: str, verdict: str
) -> None:
    assert rerun(script, expected, 1 if "sleep" in script else 60, []).verdict == verdict


def test_a_failure_whose_script_fails_stays() -> None:
    found = failure("assert False")
    assert confirmed(found, 60) == found


def test_a_failure_whose_script_passes_is_withdrawn() -> None:
    found = confirmed(failure("pass"), 60)
    assert (found.status, found.reproduction, found.finding) == ("not_exercised", "", None)
    assert "withdrawn" in found.message
    assert "x=1, but should be 2" in found.message


@pytest.mark.parametrize(
    "found",
    [
        failure(""),
        failure("make_env = ...  # your factory"),
        failure("pass", message=f"x=1 ({NOT_EVERY_TIME})"),
        failure("pass", "errored", f"the check itself raised KeyError: 1. {OWN_MISTAKE}"),
        failure("pass", "passed"),
        failure("import no_such_module", "errored", "env.reset() raised ValueError: no"),
    ],
    ids=["no script", "no factory", "flaky", "own mistake", "passed", "cannot run"],
)
def test_what_a_script_cannot_refute_stays(found: Result) -> None:
    assert confirmed(found, 60) == found


def test_what_an_earlier_program_left_behind_accuses_nobody() -> None:
    """The class forgets terminal observations once fifty instances have been made."""
    report = checked(Worn, only=(IFF_DONE,))
    assert report[IFF_DONE].status == "not_exercised"
    assert "withdrawn" in report[IFF_DONE].message
