"""Worker processes start without the user's main module, and end with their parent, however."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from sb3compat import ParallelVecEnv
from sb3compat._parallel.launch import launch, signals_held
from tests.envs import fns
from tests.interpreter import hidden
from tests.interrupts import count, interrupt
from tests.profiles import nightly

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="by signals and /proc")

_LEFT: list[ParallelVecEnv] = []
METHODS = [None, "fork", "forkserver", "spawn"]
method_of = pytest.mark.parametrize("method", METHODS)

ENDS = ["pass", "raise SystemExit(3)", "env.step_async(np.zeros(4, int))"]
EXITS = [(None, ENDS[0]), ("fork", ENDS[1]), ("forkserver", ENDS[2]), ("spawn", ENDS[0])]
EXITS = [(method, end) for method in METHODS for end in ENDS] if nightly() else EXITS

# torch takes seconds to import.
HIDE = hidden("stable_baselines3")

SCRIPT = """
    import os, sys, time
    import numpy as np
    import gymnasium as gym
    import sb3compat

    class Wrapper(gym.Wrapper):
        def pid(self):
            return os.getpid()

        def loaded(self):
            return [name for name in ("torch", "stable_baselines3") if name in sys.modules]

    def make():
        return Wrapper(gym.make("CartPole-v1"))

    if {method!r} == None or __name__ == "__main__":
        env = sb3compat.ParallelVecEnv([make] * 4, workers=2, start_method={method!r})
        env.reset()
        env.step(np.zeros(4, int))
        assert env.env_method("loaded") == [[]] * 4
        pids = env.env_method("pid", indices=[0, 3])
        {end}
"""
SLEEPING = """
        try:
            print(pids, flush=True)
            time.sleep(1000)
        except KeyboardInterrupt:
            print(env.step(np.zeros(4, int))[0].shape, flush=True)
        time.sleep(1000)
"""


def script(folder: Path, method: str | None, end: str) -> Path:
    path = folder / "script.py"
    code = dedent(SCRIPT.replace("{method!r}", repr(method)).replace("{end}", end))
    path.write_text(HIDE + code)
    return path


def started(path: Path) -> tuple[subprocess.Popen[str], list[int]]:
    # In a group of its own, to which a test sends Ctrl-C.
    process: subprocess.Popen[str] = subprocess.Popen(
        [sys.executable, path], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    return process, [int(part) for part in line.strip("[]\n").split(",")]


def wait_for_end(process: subprocess.Popen[str], pids: list[int]) -> None:
    """Until the processes have ended; the test's own time limit is that of the run."""
    process.wait()
    while not all(map(ended, pids)):
        time.sleep(0.01)
    if process.stdout is not None:
        process.stdout.close()


def ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def shared() -> set[str]:
    folder = Path("/dev/shm")
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


@method_of
def test_workers_leave_ctrl_c_to_their_parent_and_end_when_it_is_killed(
    method: str | None, tmp_path: Path
) -> None:
    before = shared()
    process, pids = started(script(tmp_path, method, SLEEPING.strip()))
    assert process.stdout is not None
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "(4, 4)\n"
    process.kill()
    wait_for_end(process, pids)
    assert not {name for name in shared() - before if "sb3compat" in name or "pym" in name}


@pytest.mark.parametrize(("method", "end"), EXITS)
def test_python_ends_without_close(method: str | None, end: str, tmp_path: Path) -> None:
    process, pids = started(script(tmp_path, method, f"print(pids, flush=True)\n        {end}"))
    wait_for_end(process, pids)
    assert process.returncode == (3 if "Exit" in end else 0)


@method_of
def test_process_of_multiprocessing_ends_without_close(method: str | None) -> None:
    # CPython: a forked process fails to use the fork server that its parent has started.
    context: Any = multiprocessing.get_context("spawn" if method == "forkserver" else "fork")
    process = context.Process(target=leave_open, args=(method,))
    process.start()
    process.join()
    assert process.exitcode == 0


def leave_open(method: str | None) -> None:
    env = ParallelVecEnv(fns(2), workers=2, start_method=method)
    env.reset()
    _LEFT.append(env)


@method_of
@pytest.mark.parametrize("end", ["hang up", "terminate", "kill"])
def test_process_has_what_the_exchange_needs(method: str | None, end: str) -> None:
    started: Any = launch(method, [])
    pipe, process = started
    assert process.pid != os.getpid()
    pipe.send_bytes(b"nonsense")
    pipe.recv_bytes()  # its handlers are set by now
    process.join(0.01)
    assert process.is_alive()
    assert process.exitcode is None
    pipe.close() if end == "hang up" else getattr(process, end)()
    process.join()
    assert not process.is_alive()
    assert process.exitcode == {"hang up": 0, "terminate": -15, "kill": -9}[end]
    process.close()
    pipe.close()


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows has no signal masks")
def test_interrupt_at_any_point_of_holding_signals_leaves_none_blocked() -> None:
    held: list[bool] = []

    def hold() -> None:
        with signals_held():
            held.append(signal.SIGALRM in signal.pthread_sigmask(signal.SIG_BLOCK, ()))

    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    total = count(hold)
    assert held == [True]
    for at in range(1, total + 1):
        raised = interrupt(hold, at, KeyboardInterrupt) is not None
        left = signal.pthread_sigmask(signal.SIG_SETMASK, before)
        assert raised
        assert left == before, f"at point {at} of {total}"
