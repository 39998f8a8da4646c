"""Hand-written VecEnvs with worker processes of their own: a death is told from an error."""

from __future__ import annotations

import multiprocessing
import signal
from typing import Any

import numpy as np
import pytest

import sb3compat
from tests.handwritten import CountingVecEnv


class WithProcesses(CountingVecEnv):
    """Handwritten, with worker processes and pipes of its own."""

    def __init__(self, error: BaseException, ended: bool) -> None:
        super().__init__()
        self.error = error
        self.processes = [multiprocessing.Process(target=signal.pause) for _ in range(2)]
        for process in self.processes:
            process.start()
        if ended:
            self.processes[1].kill()
            self.processes[1].join()

    def step(self, actions: Any) -> Any:
        raise self.error

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.join()
        super().close()


def test_worker_that_dies_in_a_handwritten_vec_env_is_a_worker_error() -> None:
    envs = sb3compat.to_gymnasium(WithProcesses(EOFError(), ended=True))
    envs.reset()
    with pytest.raises(sb3compat.WorkerError, match="has died without an answer"):
        envs.step(np.zeros(2, np.int64))
    with pytest.raises(sb3compat.WorkerError, match="Close this environment"):
        envs.reset()
    envs.close()


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (EOFError("of the user"), False),
        (BrokenPipeError(32, "of the user"), False),
        (ConnectionError("of the user"), True),  # with no number: no pipe has raised it
        (TimeoutError("of the user"), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_error_is_no_death_where_no_process_has_ended(error: Exception, ended: bool) -> None:
    envs = sb3compat.to_gymnasium(WithProcesses(error, ended))
    envs.reset()
    with pytest.raises(type(error), match="of the user"):
        envs.step(np.zeros(2, np.int64))
    envs.reset()
    envs.close()
