"""`parent_steps=True`: this process steps a share of the rows, beside its workers."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

import sb3compat
from sb3compat import ParallelVecEnv
from tests.envs import fns
from tests.parallel.failing import ACTIONS, known, opened, processes_of
from tests.parallel.known import Known
from tests.parallel.teams import children, forked


@pytest.mark.parametrize(
    ("rows", "workers", "shares"),
    [(1, 3, [1]), (2, 1, [1, 1]), (7, 2, [3, 2, 2]), (16, 1, [8, 8]), (15, 3, [4, 4, 4, 3])],
)
def test_this_process_takes_the_last_share(rows: int, workers: int, shares: list[int]) -> None:
    env = forked([lambda row=row: Known(row) for row in range(rows)], workers, parent_steps=True)
    assert [len(own) for own in env.rows_of_worker] == shares
    here = [pid == os.getpid() for pid in env.env_method("pid")]
    assert here == [row in env.rows_of_worker[-1] for row in range(rows)]
    assert len(children()) == len(shares) - 1


@pytest.mark.parametrize("policy", ["raise", "restart"])
def test_death_of_a_worker_is_told_and_its_rows_are_made_anew(policy: str) -> None:
    env = opened(known(), 2, parent_steps=True, on_worker_lost=policy)
    last = env.rows_of_worker[-1]
    env.set_attr("mu", 3, indices=list(last))
    env.rows_of_worker.pop()
    processes_of(env)[0].kill()
    if policy == "raise":
        with pytest.raises(sb3compat.WorkerError, match="rows 0 to "):
            env.step(ACTIONS)
        return
    infos = env.step(ACTIONS)[3]
    lost = [row for row, info in enumerate(infos) if "sb3compat.worker_lost" in info]
    assert lost == list(env.rows_of_worker[0])
    assert env.get_attr("mu", indices=list(last)) == [3] * len(last)  # they were not made anew


def test_functions_of_this_process_need_no_pickling() -> None:
    made, lock = fns(2), threading.Lock()

    def make() -> Any:
        with lock:
            return made[1]()

    env = ParallelVecEnv([made[0], make], 1, parent_steps=True)
    env.reset()
    env.close()


def test_environments_of_this_process_are_closed_once_and_begin_no_step_before() -> None:
    called = []

    class Noting(Known):
        def step(self, action: Any) -> Any:
            called.append("step")

        def close(self) -> None:
            called.append("close")

    env = forked([lambda: Known(0), lambda: Noting(1)], 1, parent_steps=True)
    env.reset()
    env.step_async(ACTIONS[:2])
    env.close()
    env.close()
    assert called == ["close"]
