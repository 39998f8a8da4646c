"""What is said of workers while they make their parts, and of one that hangs."""

from __future__ import annotations

import logging
import os
import re
import signal
from typing import Any

import pytest

import sb3compat
from sb3compat._parallel import signs, workers
from tests.interrupts import counting, no_hang
from tests.parallel.failing import opened
from tests.parallel.teams import forked

# Tells that the function hangs by now.
READ, WRITE = os.pipe()


def connect() -> Any:
    os.write(WRITE, b"!")
    signal.pause()


@pytest.mark.parametrize("parent_steps", [False, True])
def test_message_after_the_timeout_names_the_function_that_hangs(
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
    where = rf"calling env_fns\[3\] \(connect, test_starting.py:{line}\) for \d+ s"
    assert re.search(f"A worker process has been {where}", said)
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
