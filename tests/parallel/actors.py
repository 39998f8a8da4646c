"""Actors of a Ray cluster for the tests, and their processes."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path
from typing import Any

from sb3compat import ParallelVecEnv
from tests.parallel.failing import ACTIONS, OPENED, N
from tests.parallel.known import Known

__all__ = ["ACTIONS", "N"]

MB = 2**20
STORE = 100 * MB
ROOT = Path(__file__).parents[2]


def connect(cluster: Any) -> None:
    """Connect this process to the cluster."""
    import ray

    if not ray.is_initialized():
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")


def on_ray(fns: Any, workers: int, **kwargs: Any) -> Any:
    return ParallelVecEnv(fns, workers=workers, backend="ray", **kwargs)


def opened(fns: list[Any], workers: int = 2, **kwargs: Any) -> Any:
    env = on_ray(fns, workers, **kwargs)
    OPENED.append(env)
    env.reset()
    return env


def known(how: str = "never", row: int = 3) -> list[Any]:
    return [lambda i=i: Known(i, how if i == row else "never") for i in range(N)]


class ActorProcess:
    """The process of an actor, on this machine."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._file = os.pidfd_open(pid)

    def kill(self) -> None:
        signal.pidfd_send_signal(self._file, signal.SIGKILL)

    def has_ended(self) -> bool:
        """Wait for its end, a minute at most."""
        return bool(select.select([self._file], [], [], 60)[0])

    def __del__(self) -> None:
        os.close(self._file)


def actors_of(env: Any) -> list[ActorProcess]:
    """The process of each worker."""
    return [ActorProcess(env.env_method("pid", indices=rows[0])[0]) for rows in env.rows_of_worker]
