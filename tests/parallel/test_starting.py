"""What is said of workers while they make their parts, and of one that hangs."""

from __future__ import annotations

import ctypes
import logging
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import sb3compat
from sb3compat._parallel import signs, workers
from sb3compat._parallel.starting import Noting
from tests.envs import ScriptedEnv, script
from tests.interrupts import counting, no_hang
from tests.parallel.failing import opened
from tests.parallel.teams import forked

pytestmark = pytest.mark.usefixtures("nobody_is_left")


# Tells that the function hangs by now.
READ, WRITE = os.pipe()


def hang() -> Any:
    os.write(WRITE, b"!")
    signal.pause()


def connect() -> Any:
    return hang()


@pytest.mark.parametrize("parent_steps", [False, True])
def test_message_after_the_timeout_names_the_function_and_where_it_hangs(
    parent_steps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive = workers.Workers._receive

    def receive_once_it_hangs(self: Any, timeout: float, watch: Any = None) -> list[int]:
        if timeout == 0.05 and watch is not None:
            os.read(READ, 1)
        return receive(self, timeout, watch)

    monkeypatch.setattr(workers.Workers, "_receive", receive_once_it_hangs)
    fns = [*counting(3), connect, *counting(2)]
    with no_hang(), pytest.raises(sb3compat.WorkerTimeoutError) as caught:
        forked(fns, 2 + parent_steps, timeout=0.05)
    line = connect.__code__.co_firstlineno
    said = str(caught.value)
    assert re.search(rf"been at env_fns\[3\] \(connect, test_starting.py:{line}\) for \d+ s", said)
    calls = [text for text in said.splitlines() if text.startswith("  File")]
    names = [text.rpartition(" in ")[2] for text in calls]
    first = names.index("hang")  # another worker may be late as well
    assert names[first : first + 2] == ["hang", "connect"]
    assert "timeout=, or fix" in said


def test_log_says_which_worker_is_at_which_function(
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.INFO, "sb3compat")
    monkeypatch.setattr(signs, "QUIET_SECONDS", 1e6)
    opened(counting(2), 2, make=forked)
    assert not caplog.messages
    monkeypatch.setattr(signs, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(signs, "LOG_SECONDS", 0.0)
    monkeypatch.setattr(signs, "TURN_SECONDS", 0.0)
    opened(counting(2), 2, make=forked)
    assert re.search(
        r"0 of 2 workers have started, after \d s; worker 0: env_fns\[0\]", caplog.text
    )
    assert re.search(
        r"[01] of 2 parts are made, after \d s; worker [01]: env_fns\[[01]\]", caplog.text
    )
    assert capfd.readouterr() == ("", "")


class Handling(ScriptedEnv):
    """Handles the signal by which the parent asks for stacks."""

    def __init__(self) -> None:
        super().__init__(script())
        self.signs: list[int] = []
        signal.signal(signal.SIGUSR1, lambda number, _: self.signs.append(number))

    def hit(self) -> list[int]:
        signal.raise_signal(signal.SIGUSR1)
        return self.signs


@pytest.mark.skipif(sys.platform != "linux", reason="by /proc")
def test_handler_that_python_does_not_know_stays(tmp_path: Path) -> None:
    """An environment may be written in C."""

    def ignored() -> bool:
        status = Path("/proc/self/status").read_text()
        mask = int(status.partition("SigIgn:")[2].split()[0], 16)
        return bool(mask >> (signal.SIGUSR1 - 1) & 1)

    before = signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    libc = ctypes.CDLL(None)
    libc.signal(int(signal.SIGUSR1), ctypes.c_void_p(1))  # SIG_IGN
    try:
        assert ignored()
        with (tmp_path / "stacks").open("w") as file, Noting(file.fileno()):
            assert not ignored()
        assert ignored()
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("make", [forked, sb3compat.ParallelVecEnv])
def test_handler_that_an_environment_has_set_stays(make: Any) -> None:
    env = opened([Handling], 1, make=make)
    assert env.env_method("hit") == [[signal.SIGUSR1]]
