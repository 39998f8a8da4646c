"""Checks in forks, with instances that were made ahead."""

from __future__ import annotations

import _thread
import mmap
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.specimens import every
from conformance.specimens.registry import specimens
from sb3compat.conformance import Report
from sb3compat.conformance.program.instances import Instances
from sb3compat.conformance.run import child, forks
from sb3compat.conformance.run.forks import Forks, held
from sb3compat.conformance.run.options import Options
from sb3compat.conformance.run.reproduction import timeline_of
from sb3compat.conformance.run.runner import Runner
from sb3compat.conformance.run.session import Session
from sb3compat.conformance.subject.examine import Given, examine
from sb3compat.conformance.subject.pace import MADE_AHEAD
from sb3compat.conformance.subject.settings import Settings
from tests.conformance.runs import FEW
from tests.conformance.tiny import NoTerminalObservation, Raises, TinyVecEnv

assert every.MODULES, "they have to be imported before `specimens` is asked"
pytestmark = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's /proc")
_SERVE = "from sb3compat.conformance.run import forks; forks._LONG = -1.0; "


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instances count as taking long to make, here and in the process that runs the checks."""
    monkeypatch.setattr(forks, "_LONG", -1.0)
    monkeypatch.setattr(child, "_START", _SERVE + child._START)


class DiesInForks(TinyVecEnv):
    def step_wait(self) -> Any:
        if multiprocessing.parent_process() is not None:
            os.abort()
        return super().step_wait()


class Files(TinyVecEnv):
    """Reads a file of its own in each step, which it removes as it is closed."""

    def __init__(self) -> None:
        super().__init__()
        handle, self.name = tempfile.mkstemp()
        os.close(handle)

    def step_wait(self) -> Any:
        Path(self.name).read_bytes()
        return super().step_wait()

    def close(self) -> None:
        Path(self.name).unlink(missing_ok=True)


def opens_a_file() -> TinyVecEnv:
    env = TinyVecEnv()
    env.file = Path(os.devnull).open()  # type: ignore[attr-defined]  # noqa: SIM115
    return env


def starts_a_thread() -> TinyVecEnv:
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait, daemon=True)
    thread.start()

    class WithAThread(TinyVecEnv):
        def close(self) -> None:
            ended.set()
            thread.join()

    return WithAThread()


def starts_a_process() -> TinyVecEnv:
    command = [sys.executable, "-c", "import signal; signal.pause()"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)

    class WithAProcess(TinyVecEnv):
        def close(self) -> None:
            process.kill()
            process.wait()

    return WithAProcess()


def shares_memory() -> TinyVecEnv:
    env = TinyVecEnv()
    env.memory = mmap.mmap(-1, 8)  # type: ignore[attr-defined]
    return env


def raises_later() -> Any:
    made = iter([TinyVecEnv()])
    return lambda: next(made)


def test_each_fork_has_all_the_instances_as_they_were_made(eager: None) -> None:
    made = []

    def factory() -> TinyVecEnv:
        made.append(os.getpid())
        return TinyVecEnv()

    def use() -> tuple[list[float], int]:
        times = []
        for _ in range(MADE_AHEAD + 1):
            env, _ = Instances(factory).take(0)
            times.append(float(env.times.sum()))
            env.step_async([0, 0])
            env.step_wait()
        return times, len(made)

    subject, forked = replace(examine(TinyVecEnv), factory=factory), Forks(held())
    assert forked.prepare(subject, factory())
    for _ in range(2):
        assert forked.run(use) == ([0.0] * (MADE_AHEAD + 1), MADE_AHEAD + 1)
    assert made == [os.getpid()] * MADE_AHEAD


def test_a_failure_is_run_again_on_instances_that_are_really_new(eager: None) -> None:
    made = []

    def factory() -> TinyVecEnv:
        made.append(TinyVecEnv())
        return made[-1]

    def replay() -> int:
        timeline_of(subject, Settings(), ["env = make_env()"])
        return len(made)

    subject, forked = examine(factory), Forks(held())
    assert forked.prepare(subject, factory())
    assert forked.run(replay) == len(made) + 1


@pytest.mark.parametrize(
    "factory",
    [opens_a_file, starts_a_thread, starts_a_process, shares_memory, raises_later()],
    ids=str,
)
def test_instances_that_a_fork_would_share_or_lack_are_not_forked(
    factory: Any, eager: None
) -> None:
    subject, before = examine(TinyVecEnv), held()
    assert Forks(before).prepare(subject, TinyVecEnv())
    assert not Forks(before).prepare(replace(subject, factory=factory), TinyVecEnv())


def test_threads_that_end_before_a_fork_do_no_harm(eager: None) -> None:
    """Those of OpenBLAS do so."""
    release = threading.Event()
    tasks = Path("/proc/self/task")

    def factory() -> TinyVecEnv:
        before = len(list(tasks.iterdir()))
        if not release.is_set():
            _thread.start_new_thread(release.wait, ())
            wait_until(lambda: len(list(tasks.iterdir())) > before)
        return TinyVecEnv()

    def end() -> None:
        running = len(list(tasks.iterdir()))
        if not release.is_set():
            release.set()
            wait_until(lambda: len(list(tasks.iterdir())) < running)

    subject, forked = replace(examine(TinyVecEnv), factory=factory), Forks(held())
    os.register_at_fork(before=end)
    assert forked.prepare(subject, factory())


def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        pass


def test_where_only_one_instance_can_exist_there_is_one(eager: None) -> None:
    opened: list[int] = []
    beside: list[int] = []

    class Alone(TinyVecEnv):
        def __init__(self) -> None:
            super().__init__()
            beside.extend(opened)
            opened.append(id(self))

        def close(self) -> None:
            opened.remove(id(self))

    runner = Runner(held=held())
    declared = {"two_at_once": False}
    given: Given = {
        "factory": Alone,
        "family": None,
        "declared": declared,
        "options": None,
        "reference": None,
    }
    assert not runner.examine(given, 1.0).forked
    assert not beside


def test_a_constructor_is_called_where_that_matters(eager: None) -> None:
    options = Options(only=["metadata_not_shared"])
    mutants = specimens("mutant", "vector_env")
    factory = next(each.factory for each in mutants if each.name == "MetadataOfTheClass")
    with Session(factory, options=options) as session:
        assert session.subject.forked
        assert session.result(session.checks[0]).status == "failed"


def test_quick_instances_are_not_made_ahead() -> None:
    assert not Forks(held()).prepare(examine(TinyVecEnv), TinyVecEnv())


def report_of(factory: Any, *, forked: bool) -> Report:
    with Session(factory, options=Options(only=(*FEW, "reset_starts_fresh_episodes"))) as session:
        assert session.subject.forked == forked
        return session.report([session.result(check) for check in session.checks])


@pytest.mark.parametrize("factory", [NoTerminalObservation, Raises, DiesInForks, Files])
def test_forks_change_no_result(factory: Any, request: pytest.FixtureRequest) -> None:
    expected = report_of(factory, forked=False)
    request.getfixturevalue("eager")
    # Neither what is lost in forks nor what fails in them only is a finding.
    assert told(report_of(factory, forked=factory is not DiesInForks)) == told(expected)


def told(report: Report) -> list[tuple[str, str, str]]:
    return [(each.check_id, each.status, each.message) for each in report.results]


def test_instances_made_ahead_are_not_in_the_way(eager: None, tmp_path: Path) -> None:
    class OneOfAFew(TinyVecEnv):
        def __init__(self) -> None:
            super().__init__()
            free = (k for k in range(MADE_AHEAD) if not (tmp_path / str(k)).exists())
            self.mine, self.pid = tmp_path / str(next(free)), os.getpid()
            self.mine.touch()

        def close(self) -> None:
            if os.getpid() == self.pid:
                self.mine.unlink(missing_ok=True)

    report = report_of(OneOfAFew, forked=True)
    assert {each.status for each in report.results} <= {"passed", "not_exercised", "skipped"}
    assert not list(tmp_path.iterdir())


class StartsAThreadLater(TinyVecEnv):
    pool: ThreadPoolExecutor | None = None

    def reset(self) -> Any:
        self.pool = self.pool or ThreadPoolExecutor(1)
        return super().reset()

    def step_wait(self) -> Any:
        assert self.pool is not None
        return self.pool.submit(super().step_wait).result()

    def close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown()


def test_no_process_is_lost_as_a_fork_lacks_threads(eager: None) -> None:
    with Session(StartsAThreadLater, options=Options(only=FEW)) as session:
        place: Any = session._place
        first = place._child
        assert all(session.result(check).status != "errored" for check in session.checks)
        assert place._child is first
