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
from sb3compat._parallel.launch import Life, launch, start_methods
from tests.envs import fns
from tests.profiles import nightly

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="by signals and /proc")

_LEFT: list[ParallelVecEnv] = []
METHODS = [None, "fork", "forkserver", "spawn"]
method_of = pytest.mark.parametrize("method", METHODS)

ENDS = ["pass", "raise SystemExit(3)", "env.step_async(np.zeros(4, int))"]
EXITS = [(None, ENDS[0]), ("fork", ENDS[1]), ("forkserver", ENDS[2]), ("spawn", ENDS[0])]
EXITS = [(method, end) for method in METHODS for end in ENDS] if nightly() else EXITS

SCRIPT = """
    import os, sys, time

    class Hide:  # torch takes seconds to import
        def find_spec(self, name, *_):
            if name == "stable_baselines3":
                raise ModuleNotFoundError(name, name=name)

    sys.meta_path.insert(0, Hide())
    import numpy as np
    import gymnasium as gym
    import sb3compat

    class Wrapper(gym.Wrapper):
        def pid(self):
            return os.getpid()

        def loaded(self, name):
            return name in sys.modules

    def make():
        return Wrapper(gym.make("CartPole-v1"))

    if {method!r} == None or __name__ == "__main__":
        env = sb3compat.ParallelVecEnv([make] * 4, workers=2, start_method={method!r})
        env.reset()
        env.step(np.zeros(4, int))
        print(env.env_method("pid", indices=[0, 3]), flush=True)
        {end}
"""


def script(folder: Path, method: str | None, end: str) -> Path:
    path = folder / "script.py"
    path.write_text(dedent(SCRIPT).format(method=method, end=end))
    return path


def started(path: Path, **kwargs: Any) -> tuple[subprocess.Popen[str], list[int]]:
    process = subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, text=True, **kwargs)
    assert process.stdout is not None
    line = process.stdout.readline()
    return process, [int(part) for part in line.strip("[]\n").split(",")]


def ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_for_end(pids: list[int]) -> None:
    """Until the processes have ended; the test's own time limit is that of the run."""
    while not all(map(ended, pids)):
        time.sleep(0.01)


def shared() -> set[str]:
    folder = Path("/dev/shm")
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


@method_of
def test_workers_end_when_their_parent_is_killed(method: str | None, tmp_path: Path) -> None:
    before = shared()
    process, pids = started(script(tmp_path, method, "time.sleep(1000)"))
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_for_end(pids)
    assert not {name for name in shared() - before if "sb3compat" in name or "pym" in name}
    process.stdout.close()  # type: ignore[union-attr]


@pytest.mark.parametrize(("method", "end"), EXITS)
def test_python_ends_without_close(method: str | None, end: str, tmp_path: Path) -> None:
    process, pids = started(script(tmp_path, method, end))
    assert process.wait() == (3 if "Exit" in end else 0)
    wait_for_end(pids)
    process.stdout.close()  # type: ignore[union-attr]


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
def test_workers_leave_ctrl_c_to_their_parent(method: str | None, tmp_path: Path) -> None:
    end = """
        try:
            print("ready", flush=True)
            time.sleep(1000)
        except KeyboardInterrupt:
            print(env.step(np.zeros(4, int))[0].shape, flush=True)
        env.close()
    """.replace("\n" + " " * 4, "\n").strip()
    process, pids = started(script(tmp_path, method, end), start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "(4, 4)\n"
    assert process.wait() == 0
    wait_for_end(pids)
    process.stdout.close()


def test_main_module_is_not_imported_and_torch_is_not_loaded(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    end = 'print([env.env_method("loaded", n)[0] for n in ("torch", "stable_baselines3")])'
    path = script(tmp_path, None, end)
    text = path.read_text().replace("sys.meta_path.insert(0, Hide())", "import torch")
    path.write_text(text)
    process = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    assert process.stdout.splitlines()[1] == "[False, False]"


@method_of
def test_process_has_what_the_exchange_needs(method: str | None) -> None:
    life = Life(*multiprocessing.Pipe(duplex=False))
    pipe, process, has_fns = launch(method, [], life)
    assert has_fns == (method == "fork")
    assert process.is_alive()
    assert process.pid != os.getpid()
    pipe.close()
    process.join()
    assert not process.is_alive()
    assert process.exitcode == 0  # type: ignore[attr-defined]
    process.close()  # type: ignore[attr-defined]
    life.close()


@method_of
def test_processes_can_be_killed(method: str | None) -> None:
    for end in ("terminate", "kill"):
        life = Life(*multiprocessing.Pipe(duplex=False))
        pipe, process, _ = launch(method, [], life)
        pipe.send_bytes(b"nonsense")
        pipe.recv_bytes()  # its handlers are set by now
        process.join(0.01)
        assert process.is_alive()
        getattr(process, end)()
        process.join()
        assert process.exitcode < 0  # type: ignore[attr-defined]
        process.close()  # type: ignore[attr-defined]
        pipe.close()
        life.close()


def test_start_methods_are_those_of_multiprocessing() -> None:
    assert {"fork", "spawn"} <= set(start_methods())
