"""The environment's own `close()`: it ends every worker, whatever has become of them before."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv

import sb3compat
from sb3compat._ipc import pipes
from sb3compat._ipc.watched_pipes import WatchedPipe
from tests.interrupts import Counting, no_hang, raised_by


class Failing(Counting):
    """Does in a step what the action says."""

    def step(self, action: Any) -> Any:
        if action == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if action == 2:
            raise ValueError("%d is bad")
        if action == 3:
            signal.pause()
        return super().step(action)

    def mark_at(self, path: str) -> None:
        self.path = path

    def close(self) -> None:
        if hasattr(self, "path"):
            with open(self.path, "a", encoding="ascii") as file:
                file.write(f"{self.row}\n")


def makers() -> list[Callable[[], Any]]:
    return [lambda row=row: Failing(row) for row in range(3)]


@pytest.fixture(autouse=True)
def _no_hang(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(pipes, "_TERMINATE_SECONDS", 0.1)
    with no_hang():
        yield


def killed(base: Any) -> None:
    """A worker ends while nothing is asked of it."""
    base.processes[1].kill()
    base.processes[1].join()


def killed_in_a_step(base: Any) -> None:
    """A worker ends before it answers, and the environment has noted a step."""
    base.step_async([0, 3, 0])
    killed(base)


def late(base: Any) -> None:
    """A row has not answered in time."""
    base.step_async([0, 3, 0])
    base.step_wait(timeout=0.01)


def unlogged(base: Any) -> None:
    """Gymnasium fails in logging the error of a worker, and notes nothing."""
    try:
        base.step([2, 2, 2])
    finally:
        for process in base.processes:
            process.join()


STATES: dict[str, Callable[[Any, Any], Any]] = {
    "step of the adapter, died": lambda vec, _: vec.step(np.array([0, 1, 0])),
    "step of its own, died": lambda _, base: base.step(np.array([0, 1, 0])),
    "raised": lambda vec, _: vec.step(np.array([0, 2, 0])),
    "killed": lambda _, base: killed(base),
    "killed in a step": lambda _, base: killed_in_a_step(base),
    "few actions": lambda _, base: base.step_async([0, 0]),  # some rows were sent a step
    "late": lambda _, base: late(base),
    "unlogged": lambda _, base: unlogged(base),
}
WAYS: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], None]]] = {
    "bare": (lambda env: env, lambda env, _: env.close()),
    "wrapped": (gym.wrappers.vector.RecordEpisodeStatistics, lambda env, _: env.close()),
    # As `__del__` does; Python prints an exception there, and the workers stay.
    "terminated": (lambda env: env, lambda _, base: base.close(terminate=True)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("state", STATES)
def test_close_of_an_async_vector_env(state: str, way: str) -> None:
    wrap, close = WAYS[way]
    base = AsyncVectorEnv(makers(), context="fork")
    env = wrap(base)
    vec: Any = sb3compat.to_sb3(env)
    vec.reset()
    assert isinstance(base.parent_pipes[0], WatchedPipe)
    with suppress(Exception):
        STATES[state](vec, base)
    close(env, base)
    assert base.closed
    assert not any(process.is_alive() for process in base.processes)
    vec.close()


def test_close_lets_workers_that_owe_nothing_close_their_environments(tmp_path: Any) -> None:
    path = tmp_path / "closed"
    base = AsyncVectorEnv(makers(), context="fork")
    sb3compat.to_sb3(base).reset()
    base.call("mark_at", str(path))
    base.close()
    assert sorted(path.read_text().split()) == ["0", "1", "2"]


def interrupted(base: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal came while a message was written, and another row was called after it."""
    write = os.write

    def write_and_signal(number: int, data: Any) -> None:
        monkeypatch.setattr(os, "write", write)
        write(number, data)
        signal.raise_signal(signal.SIGUSR1)

    monkeypatch.setattr(os, "write", write_and_signal)
    with raised_by(signal.SIGUSR1, KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        base.env_method("render", indices=[0])
    with pytest.raises(sb3compat.WorkerError, match="row 0"):
        base.env_method("render", indices=[1])


@pytest.mark.parametrize("state", ["died", "a part sent", "interrupted"])
def test_close_of_a_subproc_vec_env(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")
    base = vec_env.SubprocVecEnv(makers(), start_method="fork")
    envs = sb3compat.to_gymnasium(base)
    envs.reset()
    if state == "died":
        with pytest.raises(sb3compat.WorkerError, match="row 1 has died"):
            envs.step(np.array([0, 1, 0]))
    elif state == "interrupted":
        interrupted(base, monkeypatch)
    else:
        pid, exchange = base.processes[1].pid, base.remotes[1].watch.exchange
        os.kill(pid, signal.SIGSTOP)  # so that it never reads
        exchange.send({1: pipes.pickled(("render", bytes(1 << 22)))}, timeout=0)
        assert 1 in exchange.unsent
    base.close()
    assert not any(process.is_alive() for process in base.processes)
    envs.close()
