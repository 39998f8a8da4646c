"""A child process that hangs or dies, and what is left of it."""

from __future__ import annotations

import inspect
import io
import multiprocessing.spawn
import re
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sb3compat.conformance import ConformanceError, FactoryError, check_vec_env
from sb3compat.conformance.run import child, places, session
from sb3compat.conformance.run.child import cause_of_death, last_words
from sb3compat.conformance.run.report import Result
from sb3compat.conformance.run.wire import receive
from tests.conformance import tiny
from tests.conformance.runs import FEW, IFF_DONE, checked, here, lost, statuses
from tests.conformance.tiny import TinyVecEnv
from tests.interpreter import run
from tests.parallel.teams import children


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_LEAST_LIMIT", 1.5)
    monkeypatch.setattr(places, "_KNOWN_TO_HANG", 1.0)
    monkeypatch.setattr(session, "_HANG_SECONDS", 1.0)


def test_a_factory_that_cloudpickle_rejects_runs_in_this_process_only() -> None:
    lock = threading.Lock()
    with pytest.raises(FactoryError, match=r"cloudpickle can carry .* isolate=False"):
        checked(lambda: (lock, TinyVecEnv())[1])
    assert here(lambda: (lock, TinyVecEnv())[1]).ok


def test_a_hang_is_told_once(impatient: None) -> None:
    report = checked(tiny.Hangs, only=(FEW[0], "rewards_shape", "dones_bool_array"))
    # The search for the end of an episode is lost first, and the run goes on.
    assert any("timeout" in note for note in report.notes)
    assert report["reset_returns_obs_only"].status == "passed"
    assert set(statuses(report)) <= {"passed", "errored", "skipped"}
    (result,) = lost(report)
    assert re.match(r"timeout: no answer within \d+ s, in env\.step\(", result.message)
    # What it hung in is known all the same, where there, and what came before.
    assert "env.step(" in result.reproduction.splitlines()[-1]
    first, *_, last = result.trace.splitlines()
    assert first.endswith("in at_the_end")
    assert "tiny.py" in last
    assert "in step" in last
    assert_before_the_end(result)
    others = {r.message for r in report.results if r.cause == result.check_id}
    assert others == {f"comes after {result.check_id}, which has failed"}
    assert not report.ok


def test_a_crash_is_told_once() -> None:
    report = checked(tiny.Dies)
    assert any("crashed" in note for note in report.notes)
    assert report["reset_returns_obs_only"].status == "passed"
    (result,) = lost(report)
    assert re.fullmatch(
        r"crashed: .* died by SIGKILL; it last said: out of memory, in env\.step\(.*\)",
        result.message,
    )
    assert "env.step(" in result.reproduction.splitlines()[-1]
    assert_before_the_end(result)
    others = {other.check_id for other in report.results if other.cause == result.check_id}
    assert others == {r.check_id for r in report.results if r.status == "skipped"} != set()


def test_a_close_that_hangs_is_a_finding(impatient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_LEAST_LIMIT", 3.0)  # the check itself waits for two seconds
    report = checked(
        tiny.HangsInClose, only=(FEW[0], "close_returns", "close_idempotent"), programs=1
    )
    # The first one does not close what it has made.
    assert statuses(report) == ["passed", "failed", "skipped"]
    assert report["close_returns"].message.startswith("error='hung', but should be no hang")


def test_a_reset_that_hangs_is_a_finding(impatient: None) -> None:
    report = checked(tiny.HangsInReset, only=("num_envs_positive", *FEW))
    assert any(note.startswith("Finding out what it can do: timeout") for note in report.notes)
    assert statuses(report) == ["passed", "errored", *["skipped"] * 4]
    assert "env.reset()" in report["reset_returns_obs_only"].message


def test_a_construction_that_hangs_ends_in_time() -> None:
    expected = r"can be made, but: timeout: .* It was here, the innermost.*:\n  File .*in hangs"
    with pytest.raises(FactoryError, match=expected):
        check_vec_env(tiny.hangs, max_seconds=1)


def assert_before_the_end(result: Result) -> None:
    assert [(m.event, m.step, m.ended) for m in result.timeline] == [
        (event, step, False)
        for event, step in (("reset", 0), ("step", 1), ("step", 2))
        for _ in range(2)
    ]
    assert {moment.action for moment in result.timeline[2:]} <= {"0", "1"}


def test_a_segmentation_fault_has_a_stack() -> None:
    result = lost(checked(tiny.Faults))[0]
    assert "died by SIGSEGV" in result.message
    assert "in string_at" in result.trace.splitlines()[0]
    assert "in at_the_end" in result.trace.splitlines()[1]


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_no_process_or_file_is_left_behind(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(children())
    checked(tiny.Dies, only=(IFF_DONE,))
    with pytest.raises(ConformanceError):
        check_vec_env(tiny.NoReset, only=FEW)
    with pytest.raises(ValueError, match="no licence"):
        checked(tiny.boom)
    assert set(children()) <= before
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
given = dict.fromkeys(["family", "declared", "options", "reference"], None) | {"factory": hangs}
look = lambda: child.ask("look_at", given, seconds=60)
threading.Thread(target=look, daemon=True).start()
while not at_work.exists():
    time.sleep(0.01)
print(child._process.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    done = run("-c", script, tmp_path / "at_work")
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid = int(done.stdout)
    for _ in range(500):
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} is still there")


def test_worker_that_runs_its_script_again_names_the_guard() -> None:
    # What Python prints in that worker, into the log of the process that runs the checks.
    complaint = inspect.getsource(multiprocessing.spawn._check_not_importing_main)
    assert "script does behind 'if __name__" in child._how("exit code 1", complaint)
    assert "__main__" not in child._how("exit code 1", "KeyError: 3")


def test_a_signal_has_a_name() -> None:
    assert cause_of_death(-signal.SIGSEGV) == "SIGSEGV"
    assert cause_of_death(-1000) == "signal 1000"
    assert cause_of_death(7) == "exit code 7"


def test_last_words_leave_out_stacks() -> None:
    log = "Check failed: 2 vs. 3\n    @  0x7f  std::thread::_State()\n"
    fatal = f"{log}Fatal Python error: Aborted\n\nThread 0x7f:\n  File ...\nExtension modules: ..."
    assert last_words(log) == ["Check failed: 2 vs. 3"]
    assert last_words(fatal) == ["Check failed: 2 vs. 3", "Fatal Python error: Aborted"]


def test_a_message_that_is_cut_off_in_its_length_is_the_end() -> None:
    assert receive(io.BytesIO(b"\0\0\0")) is None
