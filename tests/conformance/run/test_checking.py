"""One check: exceptions, failures that do not repeat, situations that no program reaches."""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from weakref import ref

import pytest

from sb3compat.conformance import check_vec_env
from sb3compat.conformance.judge import Demand
from sb3compat.conformance.run import reproduction
from sb3compat.conformance.run.checking import run_check
from sb3compat.conformance.run.options import Options
from sb3compat.conformance.run.reproduction import NOT_EVERY_TIME
from sb3compat.conformance.run.session import Session
from sb3compat.conformance.scene import Scene
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.subject.settings import Settings
from tests.conformance import tiny
from tests.conformance.found import find_check
from tests.conformance.runs import FEW, IFF_DONE, checked, here, lost
from tests.conformance.tiny import TinyVecEnv, one_at_a_time


class Verbose(tiny.AtTheEnd):
    def at_the_end(self) -> None:
        raise ValueError("x" * 10**6)


class FailsAtTimes(TinyVecEnv):
    """Cannot be made in each seventh call."""

    calls = 0

    def __init__(self) -> None:
        FailsAtTimes.calls += 1
        if FailsAtTimes.calls % 7 == 0:
            raise OSError("no device")
        super().__init__()


class WornInstance(tiny.NoTerminalObservation):
    """Forgets terminal observations from its hundredth reset on, as no single program does."""

    resets = 0

    def reset(self) -> Any:
        self.resets += 1
        self.forgets = self.resets > 99
        return super().reset()


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
    replay = reproduction._replay

    def after_the_failure(*args: Any) -> Any:
        tiny.Flaky.forgets = False
        return replay(*args)

    monkeypatch.setattr(tiny.Flaky, "forgets", True)
    monkeypatch.setattr(reproduction, "_replay", after_the_failure)
    result = here(tiny.Flaky)[IFF_DONE]
    assert result.status == "failed"
    assert NOT_EVERY_TIME in result.message


def test_an_exception_of_the_check_costs_that_check_only() -> None:
    def fails(scene: Scene) -> Iterator[Demand]:
        scene.make()
        yield {}["no such key"]

    check = replace(find_check("vec_env", IFF_DONE), function=fails)
    with Session(TinyVecEnv, options=Options(only=FEW, isolate=False)) as session:
        result = session.result(check)
    assert result.status == "errored"
    assert result.message.startswith("the check itself raised KeyError: 'no such key'.")
    assert result.message.endswith(
        f". The mistake is in {__name__}.{IFF_DONE}, not in the environment."
    )
    assert "in fails" in result.trace
    assert "env = make_env()" in result.reproduction


def test_checks_of_two_instances_are_not_exercised_where_only_one_can_exist() -> None:
    report = check_vec_env(
        one_at_a_time(),
        on_fail=None,
        programs=1,
        isolate=False,
        expected_failures={"subclasses_vec_env": "as without SB3"},
    )
    expected = "the check needs a second instance beside the first, which cannot be made"
    why = {r.check_id: r.message for r in report.results if r.message.startswith(expected)}
    assert report.ok
    assert {r.status for r in report.results if r.check_id in why} == {"not_exercised"}
    assert why["reset_cancels_pending_step"] == f"{expected}: OSError: address already in use"
    # Those that can do with one are exercised.
    assert not {name for name in why if name.startswith(("works_under", "trains", "outputs"))}
    report = checked(
        TinyVecEnv,
        only=("reset_cancels_pending_step",),
        capabilities={"two_at_once": False},
        isolate=False,
    )
    assert report.results[0].message == f"{expected}, as declared"


def test_a_factory_that_fails_on_some_calls_is_told_once() -> None:
    report = checked(FailsAtTimes, only=(*FEW, "rewards_shape", "infos_n_dicts"))
    (result,) = lost(report)
    found = re.fullmatch(
        r"make_env\(\) raised OSError: no device, in call (\d+) within one process", result.message
    )
    assert found
    assert int(found[1]) % 7 == 0
    loop = f"for _ in range({found[1]}):\n    env = make_env()\n    env.close()"
    assert loop in result.reproduction
    assert not report.ok
    # The others are judged all the same.
    assert {r.status for r in report.results} == {"passed", "errored"}


def shared(factory: Any) -> Any:
    return replace(examine(factory), shared=True)


def test_a_failure_of_a_used_instance_only_accuses_nobody() -> None:
    subject = shared(WornInstance)
    instances = subject.instances()
    for _ in range(3):
        result = run_check(find_check("vec_env", IFF_DONE), subject, Settings(), instances)
        assert result.status == "passed"


def test_a_failure_of_new_instances_is_found_with_used_ones() -> None:
    subject = shared(tiny.NoTerminalObservation)
    instances = subject.instances()
    calls = instances.calls
    before = run_check(find_check("vec_env", "rewards_shape"), subject, Settings(), instances)
    calls = instances.calls - calls
    result = run_check(find_check("vec_env", IFF_DONE), subject, Settings(), instances)
    assert (before.status, result.status) == ("passed", "failed")
    assert NOT_EVERY_TIME not in result.message
    assert calls == 1


def test_a_check_has_so_many_programs_and_no_more_where_none_can_be_smaller() -> None:
    subject = examine(TinyVecEnv)
    check = find_check("vec_env", "seed_returns_n")
    for programs in (1, 4, 8):
        assert run_check(check, subject, Settings(programs=programs)).examples == programs
    failing = examine(tiny.FloatDones)
    check = find_check("vec_env", "metadata_is_dict")  # it draws nothing
    assert run_check(check, failing, Settings()).examples == 1


def test_nothing_is_kept_of_what_was_checked() -> None:
    """A test session checks many environments in one process."""
    subject = examine(TinyVecEnv)
    instances = subject.instances()
    run_check(find_check("vec_env", IFF_DONE), subject, Settings(seconds=0), instances)
    gone = ref(instances)
    del subject, instances
    gc.collect()
    assert gone() is None


def test_no_clock_decides_what_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> Any:
        subject = examine(tiny.NoTerminalObservation)
        names = ("rewards_shape", "reset_starts_fresh_episodes", IFF_DONE)
        checks = [find_check("vec_env", name) for name in names]
        results = [run_check(check, subject, Settings()) for check in checks]
        return [(r.status, r.message, r.reproduction, r.examples) for r in results]

    usual = told()
    assert [status for status, *_ in usual] == ["passed", "passed", "failed"]
    now = time.perf_counter()

    def slow() -> float:
        nonlocal now
        now += 1e-4  # each look at the clock, as on a busy machine
        return now

    monkeypatch.setattr(time, "perf_counter", slow)
    assert told() == usual
