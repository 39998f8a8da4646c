"""Worker processes as a team: exchanges, restarts, ends."""

from __future__ import annotations

import gc
import os
import signal
from typing import Any

import numpy as np
import pytest

import sb3compat
from sb3compat._parallel import processes
from sb3compat._parallel.messages import Failure
from sb3compat._parallel.processes import Processes
from tests.envs import fns
from tests.parallel.teams import children, forked


@pytest.fixture
def team() -> Any:
    made = Processes([fns(2), fns(1)], "fork", None)
    yield made
    made.close()
    assert not children()


def test_workers_answer_only_what_they_were_asked(team: Processes) -> None:
    team.start()
    team.send({1: ("render",)})
    assert set(team.collect()) == {1}
    team.send({0: ("nothing",), 1: ("render",)})
    answers = team.collect()
    assert isinstance(answers[0], Failure)
    assert len(answers[1]) == 1
    assert team.collect() == {}


def test_message_that_cannot_be_pickled_leaves_the_workers_untouched(team: Processes) -> None:
    team.start()
    with pytest.raises(TypeError, match="pickle"):
        team.send({0: ("render",), 1: ("ask", (x for x in ()))})
    assert team.collect() == {}
    team.send({0: ("render",)})
    assert set(team.collect()) == {0}


def test_lost_worker_is_replaced_with_its_functions_and_memory() -> None:
    env: Any = sb3compat.ParallelVecEnv(fns(3), workers=2)
    workers: Any = env._source._workers
    os.kill(workers._lines[1].process.pid, signal.SIGKILL)
    workers.send({0: ("render",), 1: ("render",)})
    workers.collect()
    assert set(workers.lost) == {1}
    assert "-9" in workers.lost[1]
    workers.restart(1)
    assert not workers.lost
    env.reset()
    env.step(np.zeros(3, int))
    env.close()


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
