"""The checks as tests: pytest in this process (pytester), and mostly the checks, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sb3compat.conformance.checks import catalogue
from sb3compat.conformance.commands import check as check_command  # noqa: F401  (the plugin loads what it loads)
from tests.conformance.found import find_check
from tests.conformance.runs import OWN_CHECK
from tests.interpreter import REPOSITORY
from tests.interpreter import run as python

# pytester forgets the modules that a run imports, and NumPy cannot be imported twice.
assert catalogue.checks_of()

TINY = "tests.conformance.tiny"
Run = Callable[..., pytest.RunResult]
FEW = "reset_returns_obs_only or step_returns_four or dones_bool_array or iff_done"
# Checks that take no step.
QUICK = "num_envs_positive or reset_returns_obs_only"


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    def run(target: str, *arguments: str, isolate: bool = False) -> pytest.RunResult:
        here = () if isolate else ("--vec-env-no-isolate",)
        return pytester.runpytest_inprocess(
            "-p", "sb3compat.pytest_plugin", "--vec-env", f"{TINY}:{target}",
            "--vec-env-programs", "2", *here, *arguments,
        )  # fmt: skip

    return run


def test_each_check_is_a_test(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_of_the_users(): pass")
    result = run("FloatDones", "-v", "-k", f"{FEW} or users", isolate=True)
    result.assert_outcomes(
        passed=4, failed=1, deselected=result.parseoutcomes().get("deselected", 0)
    )
    result.stdout.fnmatch_lines(
        [
            "*::test_of_the_users PASSED*",
            f"{TINY}:FloatDones::reset_returns_obs_only PASSED*",
            f"{TINY}:FloatDones::dones_bool_array FAILED*",
            f"*_ dones_bool_array [[]{TINY}:FloatDones[]] _*",
            "dones_bool_array: dones=array([[]0., 0.[]]), but should be a bool array*",
            "The contract of an SB3 VecEnv: *",
            "from tests.conformance.tiny import FloatDones as make_env",
        ]
    )
    # No traceback of ours.
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")
    assert result.ret == 1


def test_a_failure_before_the_chosen_checks_fails_them(run: Run) -> None:
    result = run("NoReset", "-k", "dones_bool_array")
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(
        ["comes after reset_returns_obs_only, which has failed.", "reset_returns_obs_only: *"]
    )
    result = run("NoReset", "-k", "dones_bool_array or reset_returns_obs_only")
    assert (result.parseoutcomes()["failed"], result.parseoutcomes()["skipped"]) == (1, 1)


def test_what_is_not_or_partly_exercised_is_told_apart(run: Run) -> None:
    chosen = "no_phantom_transition or reset_returns_obs_only or reset_cancels_pending_step"
    result = run("TinyVecEnv", "-v", "-rs", "-k", chosen, "--vec-env-no-capability=two_at_once")
    result.stdout.fnmatch_lines(
        [
            f"{TINY}:TinyVecEnv::reset_returns_obs_only PASSED*",
            f"{TINY}:TinyVecEnv::no_phantom_transition PARTLY EXERCISED*",
            "*= partly exercised =*",
            "*--reference package.module:name*:",
            f"    {TINY}:TinyVecEnv::no_phantom_transition",
            "SKIPPED*: not exercised: the check needs a second instance*",
            "*1 passed*1 partly exercised*",
        ]
    )
    assert result.ret == 0


def test_maxfail_and_junit(run: Run, pytester: pytest.Pytester) -> None:
    result = run("NoReset", "-x", "-k", f"{QUICK} or dones_bool_array", "--junitxml=junit.xml")
    assert result.parseoutcomes()["failed"] == 1
    assert result.parseoutcomes()["passed"] == 1
    (suite,) = ElementTree.parse(pytester.path / "junit.xml").getroot()
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    assert list(cases) == ["num_envs_positive", "reset_returns_obs_only"]
    failure = cases["reset_returns_obs_only"].find("failure")
    assert failure is not None
    assert "env = make_env()" in (failure.text or "")


def test_expected_failures_are_xfails(run: Run, pytester: pytest.Pytester) -> None:
    known = pytester.path / "known.toml"
    known.write_text(
        '[reset_returns_obs_only]\nreason = "known"\nlink = "https://example.org/1"\n'
        '[num_envs_positive]\nreason = "thought so"\n'
    )
    arguments = ("-k", QUICK, "-rxX", "--vec-env-expected-failures", str(known))
    result = run("NoReset", *arguments)
    outcomes = result.parseoutcomes()
    assert (outcomes["xfailed"], outcomes["xpassed"]) == (1, 1)
    result.stdout.fnmatch_lines(["XFAIL*reset_returns_obs_only - known (https://example.org/1)"])
    assert result.ret == 0
    strict = run("NoReset", *arguments, "--vec-env-strict")
    assert strict.parseoutcomes()["failed"] == 1
    strict.stdout.fnmatch_lines(["*XPASS(strict)*thought so*"])


def test_a_failed_warning_is_a_pytest_warning(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    found = find_check("vec_env", "reset_returns_obs_only")
    warning = replace(found, severity="warning")
    known = [warning if check == found else check for check in catalogue.checks_of()]
    monkeypatch.setattr(catalogue, "_all", lambda: known)
    arguments = ("-k", QUICK)
    result = run("NoReset", *arguments)
    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["warnings"]) == (2, 1)
    # At the environment, which the user can mend.
    place = "*tests/conformance/tiny.py:*: ConformanceWarning: "
    result.stdout.fnmatch_lines([f"{place}reset_returns_obs_only: type(result)*"])
    strict = run("NoReset", *arguments, "--vec-env-strict")
    assert strict.parseoutcomes()["failed"] == 1


def test_targets_that_cannot_be_checked(run: Run) -> None:
    others = (f"{TINY}:nonsense", f"{TINY}:Tiny", "CartPol-v1")
    result = run("boom", *(f"--vec-env={target}" for target in others))
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(
        [
            "ValueError: no licence for the simulator",
            f"*{TINY}:boom cannot be made, see above.",
            "Expected the factory to make a VecEnv *, got int: 3. *",
            "*got nothing of that name. Did you mean 'TinyVecEnv'?",
            "--vec-env 'CartPol-v1' cannot be made: NameNotFound: *",
        ]
    )
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")
    assert result.stdout.str().count("Traceback") == 1  # that of the factory


def test_ids_that_pytest_prints_can_be_pasted_back(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_of_the_users(): pass")
    printed = "NoReset::reset_returns_obs_only"
    result = run("TinyVecEnv", f"{TINY}:{printed}", f"{TINY}:NoReset::num_envs_positive", "-v")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines([f"{TINY}:{printed} FAILED*", f"FAILED {TINY}:{printed}*"])
    result = run("TinyVecEnv", f"{TINY}:FloatDones::dones_bool")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*got 'dones_bool'. Did you mean 'dones_bool_array'[?]"])
    # What is a file is none of ours.
    (file,) = pytester.path.glob("test_*.py")
    result = run("TinyVecEnv", f"{file.name}::test_of_the_users", "-k", "users")
    assert result.parseoutcomes()["passed"] == 1


def test_the_knowledge_of_an_environment_is_passed_on(run: Run, pytester: pytest.Pytester) -> None:
    result = run("TinyVecEnv", "--vec-env-reference=no_such_module:singles", "--vec-env-only=x*")
    result.stdout.fnmatch_lines(["*Expected a module that can be imported, got 'no_such_module'*"])
    arguments = ("--vec-env-no-capability=seed_method", "--vec-env-only=seed_returns_n", "-rs")
    result = run("TinyVecEnv", *arguments)
    result.stdout.fnmatch_lines(["SKIPPED*needs the capability 'seed_method'"])
    arguments = ("--vec-env-only=options_used_once", '--vec-env-reset-options={"x": 3}', "-rs")
    result = run("TinyVecEnv", *arguments)
    assert "needs the capability 'options'" not in result.stdout.str()
    pytester.makepyprojecttoml("[tool.sb3compat]\nonly = ['dones_*']\nskip = ['*_shape']\n")
    result = run("TinyVecEnv", "--collect-only", "-q")
    assert [line for line in result.outlines if "::" in line] == [
        f"{TINY}:TinyVecEnv::dones_bool_array"
    ]
    pytester.makepyprojecttoml("[tool.sb3compat]\nonly = 'dones_*'\n")
    run("TinyVecEnv").stdout.fnmatch_lines(
        ["Expected a list of strings, got only = 'dones_[*]'. *"]
    )


def test_checks_of_a_conftest_run(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(OWN_CHECK)
    # In a process of its own, as what is registered stays registered.
    result = pytester.runpytest_subprocess(
        "-p", "sb3compat.pytest_plugin", "--vec-env", f"{TINY}:Generous",
        "--vec-env-only", "rewards_are_one", "--vec-env-programs", "2",
    )  # fmt: skip
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["rewards_are_one: rewards=array([[]2., 2.[]], dtype=float32), but should be 1 *"]
    )


def test_the_fixture_checks_what_a_factory_makes(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml("[tool.sb3compat]\nno-isolate = true\nprograms = 2\n")
    pytester.makepyfile(
        """
        import pytest
        from tests.conformance.tiny import NoReset, TinyVecEnv

        pytestmark = pytest.mark.vec_env(only=["reset_returns_obs_only"])

        def test_passes(check_conformance):
            assert check_conformance(lambda: TinyVecEnv(3)).num_envs == 3

        def test_fails(check_conformance):
            check_conformance(NoReset)

        def test_arguments_overrule_the_marker(check_conformance):
            check_conformance(NoReset, only=["num_envs_positive"])

        @pytest.mark.vec_env(expected_failures={"reset_returns_obs_only": "known"})
        def test_closer_markers_add_to_others(check_conformance):
            assert check_conformance(NoReset)["reset_returns_obs_only"].status == "xfailed"

        @pytest.mark.vec_env(only=["no_phantom_transition"])
        def test_in_part(check_conformance):
            check_conformance(TinyVecEnv)
        """
    )
    result = pytester.runpytest_inprocess("-p", "sb3compat.pytest_plugin", "-v", "--strict-markers")
    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["failed"]) == (3, 1), result.stdout.str()
    result.stdout.fnmatch_lines(
        [
            "*::test_in_part PARTLY EXERCISED*",
            "E *ConformanceError: reset_returns_obs_only: type(result)=*, but should be *",
            "*= partly exercised =*",
            "*--reference package.module:name* (no_phantom_transition):",
            "    *::test_in_part",
        ]
    )
    # No line of ours in the traceback.
    result.stdout.no_fnmatch_line("*pytest_plugin.py:*")


def test_options_that_there_are_not_are_refused(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.vec_env("my_package:make_env")
        def test_one(check_conformance): ...

        @pytest.mark.vec_env(onyl=["dones_*"])
        def test_other(check_conformance): ...

        def test_third(check_conformance):
            check_conformance(int, skpi=["dones_*"])
        """
    )
    result = pytester.runpytest_inprocess("-p", "sb3compat.pytest_plugin")
    result.assert_outcomes(errors=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *UsageError: Expected @pytest.mark.vec_env(name=value)*: 'my_package:make_env'. *",
            "E *UsageError: Expected options * in @pytest.mark.vec_env(…), got onyl=. *'only'?",
            "E *UsageError: Expected options * in check_conformance(…), got skpi=. *'skip'?",
        ]
    )
    result.stdout.no_fnmatch_line("*pytest_plugin.py:*")


def test_the_kit_is_not_imported_without_the_option(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(
        """
import sys

def test_one():
    assert "sb3compat.pytest_plugin" in sys.modules
    heavy = ["numpy", "gymnasium", "stable_baselines3", "sb3compat.conformance"]
    assert [name for name in heavy if name in sys.modules] == []
"""
    )
    arguments = ("-m", "pytest", "-p", "sb3compat.pytest_plugin", "-p", "no:cacheprovider")
    done = python(*arguments, cwd=tmp_path, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert done.returncode == 0, done.stdout + done.stderr
