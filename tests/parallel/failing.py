"""Environments in worker processes or Ray actors whose rows fail in a way, and their processes."""

from __future__ import annotations

import os
import select
import signal
from typing import Any

import numpy as np

from sb3compat import ParallelVecEnv
from tests.closing import closed_later
from tests.parallel.known import Known
from tests.parallel.teams import forked

N = 5
ACTIONS = np.zeros(N, int)


def on_ray(fns: Any, workers: int, **kwargs: Any) -> Any:
    return closed_later(ParallelVecEnv(fns, workers=workers, backend="ray", **kwargs))


def opened(fns: list[Any], workers: int = 2, make: Any = forked, **kwargs: Any) -> Any:
    """An environment that was reset."""
    env = make(fns, workers, **kwargs)
    env.reset()
    return env


def known(how: str = "never", row: int = 3) -> list[Any]:
    return [lambda i=i: Known(i, how if i == row else "never") for i in range(N)]


class WorkerProcess:
    """The process of a worker, on this machine."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._file = os.pidfd_open(pid)

    def kill(self) -> None:
        """Kill it, and wait until it is dead."""
        signal.pidfd_send_signal(self._file, signal.SIGKILL)
        assert self.has_ended()

    def has_ended(self) -> bool:
        """Wait for its end, a minute at most."""
        return bool(select.select([self._file], [], [], 60)[0])

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)


def processes_of(env: Any) -> list[WorkerProcess]:
    """The process of each worker."""
    return [WorkerProcess(env.env_method("pid", indices=rows[0])[0]) for rows in env.rows_of_worker]
