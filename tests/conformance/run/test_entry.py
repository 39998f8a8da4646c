"""The functions: one run of the kit, from the factory to the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sb3compat.conformance import ConformanceError, check_vec_env, check_vector_env
from sb3compat.conformance.run.entry import run
from sb3compat.conformance.run.options import Options
from tests.conformance.runs import FEW, IFF_DONE, checked, here, statuses
from tests.conformance.tiny import NoReset, NoTerminalObservation, TinyVecEnv
from tests.interpreter import run as python

# Checks that take no step.
QUICK = ("num_envs_positive", "reset_returns_obs_only")


def test_on_fail_raise_stops_at_the_first_failure() -> None:
    only = (*QUICK, "dones_shape")
    with pytest.raises(ConformanceError) as raised:
        check_vec_env(lambda: NoReset(), only=only, isolate=False)
    # It stops there, and says all there is to say.
    assert statuses(raised.value.report) == ["passed", "failed"]
    for part in (
        "reset_returns_obs_only: type(result)=<class 'tuple'>, but should be the observations",
        "The contract of an SB3 VecEnv: `reset()` returns the observations alone",
        "To reproduce it:",
        "env = make_env()",
    ):
        assert part in str(raised.value)
    assert statuses(here(NoReset, only=only)) == ["passed", "failed", "skipped"]
    with pytest.raises(ValueError, match="Expected on_fail to be 'raise' or None, got on_fail=1"):
        check_vec_env(TinyVecEnv, on_fail=1)


@pytest.mark.parametrize("function", [check_vec_env, check_vector_env])
def test_an_unknown_keyword_is_named(function: Any) -> None:
    with pytest.raises(
        TypeError, match=r"^(check_vec_env\(\) )?got an unexpected keyword argument 'sead'"
    ):
        function(TinyVecEnv, sead=1)


def test_a_finding_says_where() -> None:
    result = here(NoTerminalObservation)[IFF_DONE]
    assert result.finding is not None
    assert (result.finding.got, result.finding.step, result.finding.row) == ("[]", 3, 0)
    assert result.message.endswith("[step 3, row 0]")
    # Four moments of two rows: the reset, and three steps.
    assert [(m.event, m.step, m.row, m.ended) for m in result.timeline] == [
        ("reset", 0, 0, False),
        ("reset", 0, 1, False),
        *(("step", step, row, (step, row) == (3, 0)) for step in (1, 2, 3) for row in (0, 1)),
    ]
    last = result.timeline[-2]
    assert (last.observation, last.reward, last.flags) == ("[0, 0]", "1", "done=True")


def test_expected_failures() -> None:
    expected = dict(zip(QUICK, ("known", "known, too"), strict=True))
    report = here(NoReset, only=QUICK, expected_failures=expected)
    assert statuses(report) == ["xpassed", "xfailed"]
    assert report.results[0].message == "expected to fail: known"
    assert report.results[1].message.endswith("; expected: known, too")
    assert report.ok
    strict = here(NoReset, only=QUICK, expected_failures=expected, strict=True)
    assert [result.check_id for result in strict.failures()] == ["num_envs_positive"]


def test_same_seed_same_report() -> None:
    def told(seed: int) -> Any:
        report = checked(NoTerminalObservation, seed=seed)
        return [(r.check_id, r.status, r.message, r.reproduction) for r in report.results]

    assert told(7) == told(7)


def test_progress_is_told_before_and_after_each_check() -> None:
    told: list[tuple[str, str | None, int, int]] = []
    report = run(
        TinyVecEnv,
        options=Options(only=FEW, isolate=False),
        progress=lambda check, result, number, count: told.append(
            (check.id, result and result.status, number, count)
        ),
    )
    expected = []
    for number, check_id in enumerate(FEW, 1):
        expected += [(check_id, None, number, len(FEW)), (check_id, "passed", number, len(FEW))]
    assert told == expected
    assert len(report.results) == len(FEW)
    assert (report.target, report.family, report.num_envs) == ("TinyVecEnv", "vec_env", 2)
    assert report.versions["numpy"] == np.__version__


def test_a_script_without_a_main_guard_runs_once(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        """
from sb3compat.conformance import check_vec_env
from tests.conformance.tiny import TinyVecEnv

class Mine(TinyVecEnv):
    def reset(self):
        return super().reset(), {}

print("once")
report = check_vec_env(lambda: Mine(), on_fail=None, only=["reset_returns_obs_only"])
print(report.results[0].reproduction)
"""
    )
    done = python(script)
    assert done.returncode == 0, done.stderr
    once, _, reproduction = done.stdout.partition("\n")
    assert once == "once"
    # What it prints runs as it is, with the classes of the script.
    script.write_text(reproduction)
    done = python(script)
    assert "AssertionError: type(result)=<class 'tuple'>, but should be the obs" in done.stderr
