"""Interrupts at any point of a call: the next call gets no answer of the one before."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sb3compat
from sb3compat import ParallelVecEnv
from sb3compat._ipc.pipes import Exchange
from tests.envs import MakeEnv, script
from tests.interrupts import attempt, count, counting, interrupt, points, within
from tests.lockstep import same
from tests.parallel.failing import ACTIONS, N, failing, opened
from tests.parallel.known import Waiting

pytestmark = pytest.mark.usefixtures("nobody_is_left")


@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
def test_interrupt_in_a_step_leaves_no_answer_for_the_next_call(
    error: type[BaseException], tmp_path: Path
) -> None:
    def interrupt(*_: Any) -> None:
        raise error

    path = tmp_path / "go"
    fns = failing("never")
    fns[4] = lambda: Waiting(4, path)
    env = opened(fns)
    env.step(ACTIONS)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(error):
            env.step(ACTIONS)
    finally:
        signal.signal(signal.SIGALRM, before)
    path.touch()
    with pytest.raises(sb3compat.errors.CallOrderError):
        env.step(ACTIONS)
    assert env.get_attr("row") == list(range(N))
    env.seed(5)
    single = MakeEnv(script(), 0)()
    single.reset()  # the same number of resets
    np.testing.assert_array_equal(env.reset()[0], single.reset(seed=5)[0])
    np.testing.assert_array_equal(env.step(ACTIONS)[0][0], single.step(0)[0])


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "step": lambda env: env.step(np.zeros(3, int)),
    "reset": lambda env: env.reset(),
    "get_attr": lambda env: env.get_attr("row"),
    "get_images": lambda env: env.get_images(),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("policy", ["raise", "restart"])
def test_interrupt_at_any_point_leaves_no_answer_for_the_next_call(name: str, policy: str) -> None:
    DummyVecEnv = pytest.importorskip("stable_baselines3.common.vec_env").DummyVecEnv  # noqa: N806

    def started() -> ParallelVecEnv:
        return opened(counting(3), on_worker_lost=policy)

    env = started()
    expected = transcript(DummyVecEnv(counting(3)))
    total = count(lambda: OPERATIONS[name](env))
    for at, error in points(total, 400):
        where = f"{name}, {error.__name__} at point {at} of {total}"
        with within(120):
            raised = interrupt(lambda env=env: OPERATIONS[name](env), at, error)
            got, lost = attempt(lambda env=env: read_and_reset(env), sb3compat.WorkerError)
        if lost is not None:  # a worker of which is not known whether it got its message
            assert "died" in str(lost), f"{where}: {lost}"
            env = started()
        else:
            same(got, expected, f"{where}: {raised}")


def read_and_reset(env: Any) -> Any:
    with suppress(sb3compat.errors.CallOrderError):
        assert env.env_method("add", 3, indices=[2, 0]) == [5, 3]
    return transcript(env)


def transcript(env: Any) -> Any:
    env.seed(7)
    results: list[Any] = [(env.reset(), list(env.reset_infos))]
    results += [(env.step(np.zeros(3, int)), list(env.reset_infos)) for _ in range(4)]
    return results


def test_interrupt_while_a_step_is_sent_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    env = opened(failing("never"))

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Exchange, "send", interrupt)
        with pytest.raises(KeyboardInterrupt):
            env.step(ACTIONS)
    with pytest.raises(sb3compat.errors.CallOrderError, match="reset"):
        env.step(ACTIONS)
    env.reset()
    env.step(ACTIONS)
