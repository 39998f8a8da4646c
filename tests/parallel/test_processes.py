"""Worker processes as a team: exchanges, restarts, ends."""

from __future__ import annotations

import gc
import os
import threading

import pytest

import sb3compat
from sb3compat._parallel import processes
from tests.envs import fns
from tests.parallel.known import Known
from tests.parallel.teams import children, forked


def test_nothing_stays_open_after_an_environment() -> None:
    def files() -> int:
        """How many files are open after one more environment of each kind."""
        for method in (None, "fork"):
            env = sb3compat.ParallelVecEnv(fns(2), workers=2, start_method=method)
            env.reset()
            env.close()
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    before = files()  # Python itself opens something once
    assert files() == before


def test_hanging_close_is_ended_after_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(Known):
        def close(self) -> None:
            threading.Event().wait()

    monkeypatch.setattr(processes, "_END_SECONDS", 0.1)
    env = forked([lambda: Hanging(0)], timeout=0.2)
    with pytest.warns(UserWarning, match=r"environments of row 0 have not closed within timeout=0"):
        env.close()
    assert not children()
