"""Interrupts at any point of a call, and workers that hang or fail while they are made or closed.

`operations.py` interrupts calls in any order, but not those of rows that this process steps.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sb3compat
from sb3compat._parallel import processes
from sb3compat._parallel.source import WORKER_LOST, ParallelRows
from sb3compat._parallel.workers import Workers
from tests.closing import OPENED
from tests.interrupts import (
    Counting,
    attempt,
    count,
    counting,
    interrupt,
    interrupted,
    no_hang,
    points,
)
from tests.lockstep import same
from tests.lockstep_back import dummy
from tests.parallel.failing import WorkerProcess, opened
from tests.parallel.teams import children, forked

# CPython: after an interrupt within `Connection.close`, it closes its descriptor once more.
pytestmark = pytest.mark.usefixtures("unraisable_is_dropped")

METHODS = ["fork", None]

OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "step": lambda env: env.step(np.zeros(3, int)),
    "reset": lambda env: env.reset(),
    "get_attr": lambda env: env.get_attr("row"),
    "get_images": lambda env: env.get_images(),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_interrupt_at_any_point_leaves_no_answer_for_the_next_call(name: str) -> None:
    expected = transcript(dummy(counting(3)))
    started = partial(opened, counting(3), parent_steps=True)
    for env, _, where in interrupted(started, OPERATIONS[name]):
        got, lost = attempt(partial(read_and_reset, env), sb3compat.WorkerError)
        if lost is not None:  # a worker of which is not known whether it got its message
            assert "died" in str(lost), f"{where}: {lost}"
        else:
            same(got, expected, where)


def read_and_reset(env: Any) -> Any:
    with suppress(sb3compat.errors.CallOrderError):
        assert env.env_method("add", 3, indices=[2, 0]) == [5, 3]
    return transcript(env)


def transcript(env: Any) -> Any:
    env.seed(7)
    results: list[Any] = [(env.reset(), told(env))]
    results += [(env.step(np.zeros(3, int)), told(env)) for _ in range(4)]
    return results


def told(env: Any) -> list[Any]:
    """The infos of the last resets, but for what they tell of lost workers."""
    return [{k: v for k, v in info.items() if k != WORKER_LOST} for info in env.reset_infos]


def wait_until_nobody_is_left() -> None:
    """A process whose start was interrupted, of which its parent knows nothing, ends by itself."""
    while children():
        gc.collect()  # the end of its pipe, which the interrupt has left in a frame
        time.sleep(0.01)


def with_loss() -> Any:
    """The worker of the last row is dead."""
    env = opened(counting(3), 2, on_worker_lost="restart")
    WorkerProcess(children()[-1]).kill()
    return env


def test_reset_that_replaces_a_worker_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    env = with_loss()
    with monkeypatch.context() as patch:
        patch.setattr(ParallelRows, "_batch", interrupted_after(ParallelRows._batch))
        with pytest.raises(KeyboardInterrupt):
            env.reset()
    env.reset()  # tells what the one before has replaced
    assert [info.get(WORKER_LOST, False) for info in env.reset_infos] == [False, False, True]
    env.reset()
    assert not any(WORKER_LOST in info for info in env.reset_infos)


@pytest.mark.parametrize("use", ["reset", "step"])
def test_interrupt_at_any_point_of_a_replacement_is_drained_by_the_next_reset(use: str) -> None:
    expected = transcript(dummy(counting(3)))
    for env, _, where in interrupted(with_loss, OPERATIONS[use]):
        same(transcript(env), expected, where)
        env.close()
        wait_until_nobody_is_left()


def test_close_that_is_interrupted_twice_is_finished_by_the_next() -> None:
    def started() -> Any:
        env = forked(counting(2), 2)
        env.reset()
        return env

    total = count(started().close)
    for at, error in points(total):
        env = started()
        with no_hang():
            interrupt(env.close, at, error)
            interrupt(env.close, at, error)
            env.close()
        assert not children(), f"{error.__name__} at point {at} of {total}"


def limited(env: Any, seconds: float) -> Any:
    """The environment, with another timeout from now on."""
    env._source._workers._timeout = seconds
    return env


def test_replacement_that_hangs_is_a_timeout_error_and_the_next_reset_tries_again(
    tmp_path: Path,
) -> None:
    flag = tmp_path / "hang"

    def hangs() -> Any:
        if flag.exists():
            threading.Event().wait()
        return Counting(2)

    env = opened([*counting(2), hangs], 2, on_worker_lost="restart")
    WorkerProcess(children()[-1]).kill()
    flag.touch()
    with no_hang(), pytest.raises(sb3compat.WorkerTimeoutError, match="have not made their parts"):
        limited(env, 1.0).reset()
    assert len(children()) == 1
    flag.unlink()
    same(transcript(limited(env, 60.0)), transcript(dummy(counting(3))))


@pytest.mark.parametrize("left", [0, 2, 4, 6])
def test_no_descriptors_left_is_an_error_that_says_so(left: int) -> None:
    with few_descriptors(left), pytest.raises((sb3compat.WorkerError, OSError), match="open files"):
        forked(counting(6), 6)
    env = with_loss()
    with few_descriptors(left):
        attempt(env.reset, sb3compat.WorkerError, OSError)
    same(transcript(env), transcript(dummy(counting(3))))


@contextmanager
def few_descriptors(left: int) -> Iterator[None]:
    """Only so many descriptors are to be had, besides those that are open."""
    gc.collect()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, limits[1]))
    taken: list[int] = []
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(left):
            os.close(taken.pop())
        yield
    finally:
        for number in taken:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


LONG = bytes(10_000_000)  # more than a pipe holds


def test_long_message_to_a_stopped_worker_ends_by_the_timeout() -> None:
    env = opened(counting(2), 2)
    stopped = children()[-1]
    os.kill(stopped, signal.SIGSTOP)
    with no_hang(), pytest.raises(sb3compat.WorkerTimeoutError, match=r"row 1\b"):
        limited(env, 0.2).set_attr("mark", LONG)
    # Half of the message is in its pipe: the other half has to come before the next one.
    os.kill(stopped, signal.SIGCONT)
    assert limited(env, 60.0).env_method("add", 2) == [2, 3]
    assert env.get_attr("mark", indices=1) == [LONG]


def interrupted_after(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        function(*args)
        raise KeyboardInterrupt

    return call


@pytest.mark.parametrize("policy", ["raise", "restart"])
def test_second_interrupt_before_a_loss_is_noted_leaves_no_answer_for_the_next_call(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = opened(counting(3), 3, on_worker_lost=policy)
    for owner, name, function in ((os, "write", os.write), (Workers, "_note_dead", id)):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, interrupted_after(function))
            with pytest.raises(KeyboardInterrupt):
                env.env_method("add", 1, indices=[0])
    wait([env._source._workers._lines[0].pipe])  # the answer to the first call
    stepped, lost = attempt(lambda: env.step(np.zeros(3, int)), sb3compat.WorkerError)
    if policy == "restart":
        assert [info.get(WORKER_LOST, False) for info in stepped[3]] == [True, False, False]
        same(transcript(env), transcript(dummy(counting(3))))
    else:
        assert "an interrupt has come while a message was written" in str(lost)


class HangsUntilClosed(Counting):
    """Its step sends a signal to the parent, once that waits for it, and does not return."""

    def step(self, action: Any) -> Any:
        stat = Path(f"/proc/{os.getppid()}/stat")
        while stat.read_text().rpartition(")")[2].split()[0] != "S":
            pass
        os.kill(os.getppid(), signal.SIGUSR1)
        while True:
            signal.pause()


@pytest.mark.parametrize("policy", ["raise", "restart"])
def test_close_from_a_signal_handler_ends_workers_and_the_step(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_END_SECONDS", 0.1)
    env = opened([partial(HangsUntilClosed, 0), *counting(2)], 2, on_worker_lost=policy)
    errors: list[Any] = []
    before = signal.signal(
        signal.SIGUSR1, lambda *_: errors.append(attempt(env.close, Exception)[1])
    )
    try:
        with no_hang(), pytest.raises(sb3compat.ClosedError, match=r"close\(\) was called"):
            env.step(np.zeros(3, int))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (errors, children()) == ([None], [])


def test_close_and_use_in_a_fork_leave_the_workers_alone() -> None:
    env = opened(counting(2), 2)
    pid = os.fork()
    if pid == 0:
        code = 1
        with suppress(BaseException):
            refused = attempt(env.reset, sb3compat.WorkerError)[1]
            env.close()
            env.close()
            OPENED.clear()
            del env
            gc.collect()  # forgets it, too
            code = 0 if "from its fork" in str(refused) else 2
        os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    env.reset()
    assert env.env_method("add", 2) == [2, 3]


def test_forgotten_environment_closes_its_parts_though_another_was_forked_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make() -> Any:
        env: Any = Counting(0)
        env.close = (tmp_path / "closed").touch
        return env

    monkeypatch.setattr(processes, "_END_SECONDS", 60.0)  # else they would be terminated
    first = sb3compat.ParallelVecEnv([make], start_method="fork")
    second = opened(counting(1))
    with no_hang():
        del first
        gc.collect()
    assert (tmp_path / "closed").exists()
    second.reset()


@pytest.mark.parametrize("method", METHODS)
def test_parent_that_is_not_asked_for_the_ends_of_its_children_closes_all_the_same(
    method: str | None,
) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        env = sb3compat.ParallelVecEnv(counting(2), 2, start_method=method)
        env.reset()
        with no_hang():
            env.close()
            env.close()
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert not children()
