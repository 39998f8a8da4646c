"""Worker processes as a team: exchanges, restarts, ends."""

from __future__ import annotations

import gc
import os

import pytest

import sb3compat
from sb3compat._parallel import processes
from tests.envs import fns
from tests.parallel.teams import children, forked


def test_nothing_stays_open_after_many_environments() -> None:
    def files() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    def use(method: str | None) -> None:
        env = sb3compat.ParallelVecEnv(fns(2), workers=2, start_method=method)
        env.reset()
        env.close()

    methods = (None, "fork")
    for method in methods:  # Python itself opens something once
        use(method)
    before = files()
    for method in methods:
        use(method)
    assert files() == before


def test_hanging_close_is_ended_after_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    from tests.envs import ScriptedEnv, script

    class Hanging(ScriptedEnv):
        def close(self) -> None:
            threading.Event().wait()

    monkeypatch.setattr(processes, "_END_SECONDS", 0.1)
    env = forked([lambda: Hanging(script(), 0)], timeout=0.2)
    env.close()
    assert not children()
