"""One run of the kit, from the factory to the report; most in a process of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from sb3compat.conformance import (
    ConformanceError,
    FactoryError,
    Report,
    check_vec_env,
    check_vector_env,
)
from sb3compat.conformance.checks.catalogue import checks_of, find_check
from sb3compat.conformance.findings import EnvFailureError
from sb3compat.conformance.play import Play
from sb3compat.conformance.program.script import Script
from sb3compat.conformance.program.source import PLACEHOLDER, definition, factory_source
from sb3compat.conformance.run import child as isolation
from sb3compat.conformance.run import places
from sb3compat.conformance.run.entry import run
from sb3compat.conformance.run.log import last_words
from sb3compat.conformance.run.options import Options
from sb3compat.conformance.run.perturb import perturb
from sb3compat.conformance.run.report import Result
from sb3compat.conformance.run.search import run_check
from sb3compat.conformance.run.session import MAX_SECONDS, Session, _needed
from sb3compat.conformance.run.settings import Settings
from sb3compat.conformance.subject.examine import examine
from tests.conformance import tiny
from tests.conformance.tiny import FloatDones, NoTerminalObservation, TinyVecEnv

ROOT = Path(__file__).parents[2]
IFF_DONE = "terminal_observation_iff_done"
FEW = (
    "reset_returns_obs_only", "step_returns_four", "dones_shape", "dones_bool_array", IFF_DONE,
)  # fmt: skip


class Spaceless(TinyVecEnv):
    @property
    def action_space(self) -> Any:
        raise AttributeError("gone")

    @action_space.setter
    def action_space(self, space: Any) -> None:
        pass


class Exits(tiny.AtTheEnd):
    def at_the_end(self) -> None:
        sys.exit("the simulator says goodbye")


class Verbose(tiny.AtTheEnd):
    def at_the_end(self) -> None:
        raise ValueError("x" * 10**6)


def checked(factory: Any, *, only: tuple[str, ...] = FEW, **options: Any) -> Report:
    return check_vec_env(factory, on_fail=None, only=only, **options)


def here(factory: Any, **options: Any) -> Report:
    """The same in this process, which is quicker."""
    return checked(factory, isolate=False, **options)


def statuses(report: Report) -> list[str]:
    return [result.status for result in report.results]


def test_clean() -> None:
    report = checked(TinyVecEnv)
    assert report.ok
    assert statuses(report) == ["passed"] * 5
    assert (report.target, report.family, report.num_envs) == ("TinyVecEnv", "vec_env", 2)
    assert report.versions["numpy"] == np.__version__


def test_on_fail() -> None:
    with pytest.raises(ConformanceError) as raised:
        check_vec_env(lambda: FloatDones(), only=FEW, isolate=False)
    # It stops there, and says all there is to say.
    assert statuses(raised.value.report) == ["passed", "passed", "passed", "failed"]
    for part in (
        "dones_bool_array: dones=array([0., 0.]), but should be a bool array of shape (2,)",
        "The contract of an SB3 VecEnv: `dones` is a NumPy array of bools.",
        "To reproduce it:",
        "env = make_env()",
    ):
        assert part in str(raised.value)
    assert statuses(here(FloatDones)) == ["passed", "passed", "passed", "failed", "passed"]
    with pytest.raises(ValueError, match="Expected on_fail to be 'raise' or None, got on_fail=1"):
        check_vec_env(TinyVecEnv, on_fail=1)


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


def test_what_too_few_actions_do_is_told_of_once() -> None:
    report = here(TinyVecEnv, only=("wrong_action_count_rejected", "close_after_error"))
    assert report["wrong_action_count_rejected"].status == "failed"
    assert report["close_after_error"].status == "skipped"


def test_expected_failures() -> None:
    expected = {"dones_bool_array": "known", IFF_DONE: "known, too"}
    report = here(FloatDones, expected_failures=expected)
    assert statuses(report)[2:] == ["passed", "xfailed", "xpassed"]
    assert report["dones_bool_array"].message.endswith("; expected: known")
    assert report[IFF_DONE].message == "expected to fail: known, too"
    assert report.ok
    strict = here(FloatDones, expected_failures=expected, strict=True)
    assert [result.check_id for result in strict.failures()] == [IFF_DONE]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"only": ("dones_bool",)}, r"`only`, got 'dones_bool'\. Did you mean 'dones_bool_array'"),
        ({"expected_failures": {"qqq": "x"}}, r"in `expected_failures`, got 'qqq'\.$"),
        ({"capabilities": {"rendr": True}}, r"a capability, got 'rendr'\. Did you mean 'render'"),
    ],
)
def test_unknown_names(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_vec_env(TinyVecEnv, **options)


def test_checks_for_others() -> None:
    other = next((c.id for c in checks_of("vector_env") if c.id not in FEW), None)
    if other is None:
        pytest.skip("there are no checks of a VectorEnv")
    with pytest.raises(ValueError, match=f"checks of an SB3 VecEnv in `only`, got {other}"):
        here(TinyVecEnv, only=(other,))
    assert f"{other} is no check of an SB3 VecEnv" in here(TinyVecEnv, only=(*FEW, other)).notes


def test_prerequisites_are_run_for_those_that_were_asked_for() -> None:
    report = here(Threes, only=("dones_bool_array",))
    assert statuses(report) == ["skipped"]
    assert report.results[0].message == "comes after step_returns_four, which has failed"


class Threes(TinyVecEnv):
    def step_wait(self) -> Any:
        return super().step_wait()[:3]


@pytest.mark.parametrize("isolate", [True, False])
def test_a_factory_that_raises(isolate: bool) -> None:
    with pytest.raises(ValueError, match="no licence for the simulator"):
        checked(tiny.boom, isolate=isolate)


@pytest.mark.parametrize("isolate", [True, False])
def test_a_factory_that_makes_something_else(isolate: bool) -> None:
    with pytest.raises(FactoryError, match=r"Expected the factory to make a VecEnv .* got int: 3"):
        checked(tiny.nonsense, isolate=isolate)


def test_no_factory() -> None:
    with pytest.raises(
        FactoryError, match=r"a function that makes the environment, got TinyVecEnv"
    ):
        here(TinyVecEnv())
    with pytest.raises(FactoryError, match=r"to make a Gymnasium VectorEnv, got an SB3 VecEnv"):
        check_vector_env(TinyVecEnv, isolate=False)


def changed(**attributes: Any) -> Any:
    env = TinyVecEnv()
    vars(env).update(attributes)
    return env


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (lambda: None, r"got NoneType: None\. Does it return what it makes\?$"),
        (
            lambda: gym.make("CartPole-v1"),
            r"That is a single environment\. Make several rows of it",
        ),
        (
            lambda rows: TinyVecEnv(rows),
            r"and takes no arguments, got .*: missing .*'rows'\. Write",
        ),
        ("CartPole-v1", r"that makes the environment, got str: 'CartPole-v1'\.$"),
        (lambda: sys.exit(3), r"Expected the factory to make an environment, got sys\.exit\(3\)"),
        (lambda: changed(num_envs=0), r"at least one row, got num_envs=0 \(int\) in TinyVecEnv"),
        (lambda: changed(num_envs=None), r"got num_envs=None \(NoneType\) in TinyVecEnv"),
        (lambda: changed(action_space=2), r"a Gymnasium space, got action_space=2 \(int\) in Tiny"),
        (Spaceless, r"action_space, got Spaceless, whose action_space raised AttributeError: gone"),
    ],
)
def test_wrong_factories(factory: Any, message: str) -> None:
    with pytest.raises(FactoryError, match=message):
        here(factory)


def test_a_factory_that_cannot_be_carried() -> None:
    lock = threading.Lock()
    with pytest.raises(FactoryError, match=r"cloudpickle can carry .* isolate=False"):
        checked(lambda: (lock, TinyVecEnv())[1])
    assert here(lambda: (lock, TinyVecEnv())[1]).ok


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_LEAST_LIMIT", 1.5)
    monkeypatch.setattr(places, "_LIMIT", 1.0)
    monkeypatch.setattr(places, "_LEAST_PATIENCE", 1.0)


def lost(report: Report) -> list[Result]:
    """The results of checks that the environment did not survive."""
    return [result for result in report.results if result.status == "errored"]


def test_a_hang_costs_the_checks_that_it_is_in(impatient: None) -> None:
    report = checked(tiny.Hangs, max_seconds=1.0)
    # The search for the end of an episode is lost first, and the run goes on.
    assert any("timeout" in note for note in report.notes)
    assert report["reset_returns_obs_only"].status == "passed"
    assert lost(report)
    assert set(statuses(report)) <= {"passed", "errored", "skipped"}
    for result in lost(report):
        assert result.message.startswith("timeout: no answer within")
        # What it hung in is known all the same, where there, and what came before.
        assert "env.step(" in result.reproduction.splitlines()[-1]
        first, *_, last = result.trace.splitlines()
        assert first.endswith("in at_the_end")
        assert "tiny.py" in last
        assert "in step" in last
        assert_before_the_end(result)


def test_a_process_that_dies_costs_the_checks_that_it_is_in() -> None:
    report = checked(tiny.Dies)
    assert any("crashed" in note for note in report.notes)
    assert report["reset_returns_obs_only"].status == "passed"
    assert lost(report)
    for result in lost(report):
        assert result.message == (
            "crashed: the process has died with exit code -9; it last said: out of memory"
        )
        assert "env.step(" in result.reproduction.splitlines()[-1]
        assert_before_the_end(result)


def assert_before_the_end(result: Result) -> None:
    assert [(m.event, m.step, m.ended) for m in result.timeline] == [
        (event, step, False)
        for event, step in (("reset", 0), ("step", 1), ("step", 2))
        for _ in range(2)
    ]
    assert {moment.action for moment in result.timeline[2:]} <= {"0", "1"}


def test_a_segmentation_fault_says_where() -> None:
    result = lost(checked(tiny.Faults))[0]
    assert "it last said: Fatal Python error: Segmentation fault" in result.message
    assert "in string_at" in result.trace.splitlines()[0]
    assert "in at_the_end" in result.trace.splitlines()[1]


def test_a_factory_that_hangs_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    def examine(*_: Any) -> Any:
        raise isolation.ChildFailureError("timeout: no answer", '  File "x.py", line 1 in connect')

    monkeypatch.setattr(isolation.Child, "examine", examine)
    expected = (
        r"made and closed, but: timeout: no answer\. It was here.*first:\n  File \"x.py\", line"
    )
    with pytest.raises(FactoryError, match=expected):
        checked(TinyVecEnv)


def test_last_words_are_those_of_the_environment() -> None:
    log = "Check failed: 2 vs. 3\n    @  0x7f  std::thread::_State()\n"
    fatal = f"{log}Fatal Python error: Aborted\n\nThread 0x7f:\n  File ...\nExtension modules: ..."
    assert last_words(log) == ["Check failed: 2 vs. 3"]
    assert last_words(fatal) == ["Check failed: 2 vs. 3", "Fatal Python error: Aborted"]


def test_an_environment_that_raises() -> None:
    report = here(tiny.Raises)
    assert lost(report)
    result = lost(report)[0]
    assert result.message.endswith(" raised OSError: the simulator is gone")
    # The traceback begins in the user's code.
    lines = result.trace.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "tiny.py" in lines[1]
    assert lines[-1] == "OSError: the simulator is gone"


def test_an_environment_that_ends_the_interpreter() -> None:
    report = here(Exits)
    assert "raised SystemExit: the simulator says goodbye" in lost(report)[0].message


def test_an_exception_that_says_megabytes() -> None:
    result = lost(here(Verbose))[0]
    assert len(result.message) < 3000
    assert len(result.trace) < 30_000
    assert "ValueError: xxx" in result.trace


def test_no_end_of_an_episode() -> None:
    report = here(tiny.Endless)
    assert report[IFF_DONE].status == "not_exercised"
    assert report[IFF_DONE].message == "no episode ended"
    assert report.ok


def test_a_flaky_environment_is_called_that(monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(only=FEW, isolate=False)
    with Session(tiny.Flaky, options=options) as session:
        *others, last = session.checks
        before = [check for check in session.applicable if check.id in last.after]
        assert {session.result(check).status for check in [*others, *before]} == {"passed"}
        monkeypatch.setattr(tiny.Flaky, "forgets", True)
        result = session.result(last)
    assert (result.check_id, result.status) == (IFF_DONE, "failed")
    assert "not every time: the same program has passed when it was run again" in result.message


def test_a_value_that_cannot_be_had_is_in_the_script() -> None:
    script = Script(TinyVecEnv)
    script.run("numbers = [1]")
    with pytest.raises(EnvFailureError, match="IndexError"):
        script.value("numbers[1]")
    with pytest.raises(IndexError):
        exec(script.source("make_env = ...", "title"), {})


def test_a_check_that_fails_itself_costs_that_check_only() -> None:
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


def test_what_takes_two_at_once_is_not_exercised_where_there_can_be_one() -> None:
    report = check_vec_env(
        OneAtATime,
        on_fail=None,
        max_seconds=2,
        isolate=False,
        expected_failures={"subclasses_vec_env": "as without SB3"},
    )
    expected = "it takes a second one beside the first, which cannot be made"
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


def test_a_skip_names_what_is_missing() -> None:
    # Also where what it comes after is skipped.
    before = find_check("vec_env", "dones_bool_array")
    check = replace(find_check("vec_env", IFF_DONE), needs=("render",), after=(before.id,))
    with Session(TinyVecEnv, options=Options(only=FEW, isolate=False)) as session:
        session._results[before.id] = Result.of(before, "skipped")
        result = session.result(check)
    assert (result.status, result.message) == ("skipped", "needs the capability 'render'")


def test_the_global_random_state_is_another_in_each_construction() -> None:
    reseed = perturb(seed=3)
    draws = []
    for _ in range(3):
        np.random.seed(0)
        reseed()
        draws.append(np.random.uniform())
    assert len(set(draws)) == 3


def test_an_environment_that_draws_from_the_global_random_state() -> None:
    name = "same_seed_same_trajectory"
    if name not in {check.id for check in checks_of("vec_env")}:
        pytest.skip("there is no such check")
    assert statuses(here(tiny.Noisy, only=(name,))) == ["failed"]


def test_same_seed_same_report() -> None:
    def told(seed: int) -> Any:
        report = checked(NoTerminalObservation, seed=seed)
        return [(r.check_id, r.status, r.message, r.reproduction) for r in report.results]

    assert told(7) == told(7)


def test_progress() -> None:
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


def test_time_runs_out() -> None:
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


def children() -> set[int]:
    done = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    return {int(pid) for pid, ppid, stat in rows if int(ppid) == os.getpid() and stat[0] != "Z"}


@pytest.mark.skipif(os.name != "posix", reason="needs ps")
def test_nothing_is_left_behind(impatient: None, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = children()
    checked(tiny.Dies, only=(IFF_DONE,))
    with pytest.raises(ConformanceError):
        check_vec_env(FloatDones, only=FEW)
    with pytest.raises(ValueError, match="no licence"):
        checked(tiny.boom)
    assert len(children() - before) <= 1  # ps itself
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="needs what only Linux has")
def test_the_child_ends_with_its_parent(tmp_path: Path) -> None:
    script = """
import os, sys, threading, time
from pathlib import Path
from sb3compat.conformance.run.child import Child

at_work = Path(sys.argv[1])

def hangs():
    at_work.touch()
    time.sleep(1000)

child = Child()
threading.Thread(target=child.examine, args=({"factory": hangs}, 60), daemon=True).start()
while not at_work.exists():
    time.sleep(0.01)
print(child._process.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "at_work"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid = int(done.stdout)
    for _ in range(500):
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} is still there")


def test_a_script_without_a_guard(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        """
from sb3compat.conformance import check_vec_env
from tests.conformance.tiny import TinyVecEnv

class Mine(TinyVecEnv):
    def step_wait(self):
        obs, rewards, dones, infos = super().step_wait()
        return obs, rewards, dones * 1.0, infos

print("once")
report = check_vec_env(lambda: Mine(), on_fail=None, only=["dones_bool_array"])
print(report.results[0].reproduction)
"""
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True
    )
    once, _, reproduction = done.stdout.partition("\n")
    assert once == "once"
    # What it prints runs as it is, with the classes of the script.
    script.write_text(reproduction)
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False
    )
    assert "AssertionError: dones=array([0., 0.]), but should be a bool array" in done.stderr


rewards = object()  # there is no source for it


def local_names_like_global_ones() -> Any:
    class Mine(TinyVecEnv):
        def step_wait(self) -> Any:
            obs, rewards, dones, infos = super().step_wait()
            return obs, np.where([reward > 0 for reward in rewards], rewards, 0), dones, infos

    return Mine()


def test_local_names_are_not_taken_for_global_ones() -> None:
    factory = local_names_like_global_ones
    text = factory_source(lambda: factory() and local_names_like_global_ones())
    assert text.startswith("from tests.conformance.test_api import local_names_like_global_ones\n")
    text = definition(unwrapped(factory), "make_env")
    assert text is not None
    namespace: dict[str, Any] = {}
    exec(text, namespace)
    assert namespace["make_env"]().num_envs == 2


def unwrapped(factory: Any) -> Any:
    """The same, as if it could not be imported."""
    copy = FunctionType(factory.__code__, factory.__globals__, factory.__name__)
    copy.__module__ = "__main__"
    return copy


def test_source_of_factories() -> None:
    assert factory_source(TinyVecEnv) == "from tests.conformance.tiny import TinyVecEnv as make_env"
    for factory, source in (
        (
            lambda: TinyVecEnv(num_envs=3),
            "from tests.conformance.tiny import TinyVecEnv\n\n"
            "def make_env():\n    return TinyVecEnv(num_envs=3)",
        ),
        (lambda: (os.sep, TinyVecEnv())[1], None),
    ):
        text = factory_source(factory)
        namespace: dict[str, Any] = {}
        exec(text, namespace)
        assert isinstance(namespace["make_env"](), TinyVecEnv)
        assert source in (None, text)
    lock = threading.Lock()
    assert factory_source(lambda: (lock, TinyVecEnv())[1]) == PLACEHOLDER
    assert factory_source(TinyVecEnv().reset) == PLACEHOLDER
    both = factory_source(TinyVecEnv, [tiny.single] * 2)
    assert both.endswith("import single as make_single\n\nreference = [make_single] * 2")
    assert "reference = ..." in factory_source(TinyVecEnv, [tiny.single, tiny.boom])
