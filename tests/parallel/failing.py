"""Environments in worker processes whose rows fail in a way, for the tests of faults."""

from __future__ import annotations

from typing import Any

import numpy as np

from sb3compat import ParallelVecEnv
from tests.envs import MakeEnv, script
from tests.parallel.known import Known
from tests.parallel.teams import forked
from tests.to_sb3.test_faults import Failing

N = 5
ACTIONS = np.zeros(N, int)
# Closed after each test.
OPENED: list[ParallelVecEnv] = []


def opened(fns: list[Any], workers: int = 2, **kwargs: Any) -> ParallelVecEnv:
    env = forked(fns, workers, **kwargs)
    OPENED.append(env)
    env.reset()
    return env


def failing(how: str, row: int = 3, **kwargs: Any) -> list[Any]:
    fns: list[Any] = [MakeEnv(script(**kwargs), i) for i in range(N)]
    fns[row] = lambda: Failing(row, how)
    return fns


def pids(env: Any) -> list[int]:
    return [env.env_method("pid", indices=rows[0])[0] for rows in env.rows_of_worker]


def with_pids() -> list[Any]:
    return [lambda i=i: Known(i) for i in range(N)]
