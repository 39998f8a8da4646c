"""Checks that others have written: registered in a test, or installed with a distribution."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sb3compat.conformance import CheckError, Demand, Record, check, contract, expect
from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.output import render
from sb3compat.conformance.run.wire import carried
from tests.conformance.found import find_check
from tests.conformance.runs import OWN_CHECK, checked, here
from tests.conformance.tiny import Generous, TinyVecEnv
from tests.interpreter import run as python

pytestmark = pytest.mark.usefixtures("own_checks")

LIMIT = 1.0


def rewards_are_small(record: Record) -> Iterator[Demand]:
    """No reward is above the limit.

    It says more below.
    """
    for step in record.steps:
        yield expect(f"{{0}}.max() <= {LIMIT}", step.rewards, should=f"at most {LIMIT}")


def test_a_registered_check_is_one_like_the_others() -> None:
    assert check("vec_env", source="https://example.org")(rewards_are_small) is rewards_are_small
    found = find_check("vec_env", "rewards_are_small")
    assert checks_of("vec_env")[-1] == found
    assert (found.group, found.severity) == ("tests", "error")
    assert found.contract == "No reward is above the limit."
    assert found.explanation == "It says more below."
    assert found.after == contract.BASICS["vec_env"]
    assert "rewards_are_small" not in {other.id for other in checks_of("vector_env")}


def test_a_registered_check_runs_in_the_process_of_the_others_and_needs_no_source() -> None:
    check("vec_env")(rewards_are_small)
    report = checked(Generous, only=("rewards_are_*",))
    (result,) = report.results
    assert (result.check_id, result.status) == ("rewards_are_small", "failed")
    assert result.message.startswith("rewards=array([2., 2.], dtype=float32), but should be at mos")
    assert "assert rewards.max() <= 1.0" in result.reproduction
    for form in ("terminal", "markdown", "html"):
        text = render(report, form)
        assert "No reward is above the limit." in text
        assert "Source" not in text


def test_a_check_of_a_test_travels_whole_and_an_installed_one_by_name() -> None:
    check("vec_env")(rewards_are_small)
    assert b"at most" in carried(find_check("vec_env", "rewards_are_small"))
    assert b"at most" not in carried(find_check("vec_env", "dones_bool_array"))
    assert b"dones_bool_array" in carried(find_check("vec_env", "dones_bool_array"))


def test_a_registered_check_comes_after_those_that_it_names() -> None:
    check("vec_env", after=["rewards_float32"])(rewards_are_small)

    class Wide(TinyVecEnv):
        def step_wait(self) -> Any:
            obs, rewards, dones, infos = super().step_wait()
            return obs, rewards.astype(float), dones, infos

    report = here(Wide, only=("rewards_are_small", "rewards_float32"))
    assert report["rewards_are_small"].message == "comes after rewards_float32, which has warned"


def no_docstring(record: Record) -> Iterator[Demand]:
    yield from ()


def dones_bool_array(record: Record) -> Iterator[Demand]:
    """An id that is taken."""
    yield from ()


def of_something_else(play: Any) -> Iterator[Demand]:
    """The kit does not know what to pass."""
    yield from ()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (no_docstring, r"no_docstring to have a docstring, .*, got none\. Write one\."),
        (dones_bool_array, r"test_outside\.dones_bool_array beside sb3compat.*Rename"),
        (of_something_else, r"called record .* or scene .*, got 'play'\. Rename it"),
    ],
)
def test_what_cannot_be_a_check_is_refused(function: Any, message: str) -> None:
    with pytest.raises(CheckError, match=message):
        check("vec_env")(function)
    assert function.__module__ not in {c.function.__module__ for c in checks_of()}


def test_a_check_after_one_that_does_not_exist_is_refused() -> None:
    check("vec_env", after=["rewards_float23"])(rewards_are_small)
    with pytest.raises(
        ValueError, match=r"after='rewards_float23'\. Did you mean 'rewards_float32"
    ):
        here(TinyVecEnv)


def test_the_same_module_may_be_imported_again() -> None:
    check("vec_env")(rewards_are_small)
    check("vec_env", severity="warning")(rewards_are_small)
    assert find_check("vec_env", "rewards_are_small").severity == "warning"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with an installed distribution that has a check."""
    (tmp_path / "robots_checks.py").write_text(OWN_CHECK)
    about = tmp_path / "robots-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: robots\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[sb3compat.checks]\nrobots = robots_checks\n")
    return tmp_path


def sb3compat(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return python("-m", "sb3compat", *arguments, path=[site])


def test_checks_of_an_installed_distribution_are_found(site: Path) -> None:
    target = "tests.conformance.tiny:Generous"
    done = sb3compat(site, "check", target, "--only=rewards_are_*", "--format=junit")
    assert (done.returncode, done.stderr) == (1, "")
    assert 'classname="sb3compat.vec_env.robots_checks" name="rewards_are_one"' in done.stdout
    assert "rewards=array([2., 2.], dtype=float32), but should be 1" in done.stdout


def test_a_distribution_whose_checks_cannot_be_imported_is_named(site: Path) -> None:
    (site / "robots_checks.py").write_text("import no_such_module_at_all\n")
    for arguments in (["list"], ["check", "tests.conformance.tiny:Generous"]):
        done = sb3compat(site, *arguments)
        assert done.returncode == 2
        assert "Expected the checks of robots to be importable as robots_checks" in done.stderr
        assert "No module named 'no_such_module_at_all'" in done.stderr
