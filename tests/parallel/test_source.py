"""What the parent makes of the answers of its workers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sb3compat
from tests.envs import fns
from tests.parallel.teams import forked

STEP = np.zeros(5, int)


@pytest.fixture
def env() -> Any:
    made = forked(fns(5, infos="none", lengths=(2,)), 2)
    made.reset()
    yield made
    made.close()


def test_worker_of_each_row_is_known(env: Any) -> None:
    assert [env._source.worker_of(row) for row in range(5)] == [0, 0, 0, 1, 1]


def test_infos_are_distinct_dicts(env: Any) -> None:
    for _ in range(3):
        infos = env.step(STEP)[3]
        assert len({id(info) for info in infos}) == 5
        assert all(type(info["TimeLimit.truncated"]) is bool for info in infos)


def test_a_step_is_one_message_each_way(env: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    workers = env._source._workers
    send = type(workers)._send

    def noted(self: Any, data: dict[int, bytes]) -> None:
        sent.extend(map(len, data.values()))
        send(self, data)

    monkeypatch.setattr(type(workers), "_send", noted)
    env.step(STEP)
    assert sent == [4, 4]


def test_reset_cancels_a_pending_step_and_nothing_else_is_answered_meanwhile(env: Any) -> None:
    env.step_async(STEP)
    with pytest.raises(RuntimeError, match="step_wait"):
        env.get_attr("row")
    with pytest.raises(RuntimeError, match="step_wait"):
        env.step_async(STEP)
    env.reset()
    with pytest.raises(RuntimeError):
        env.step_wait()
    assert not env.step(STEP)[2].any()
    assert env.step(STEP)[2].all()


def test_first_step_without_reset_is_refused() -> None:
    env = forked([lambda: __import__("gymnasium").make("CartPole-v1")] * 2, 2)
    with pytest.raises(sb3compat.errors.CallOrderError, match=r"reset\(\) before the first step"):
        env.step(np.zeros(2, int))
    env.reset()
    env.step(np.zeros(2, int))
    env.close()


def test_wrong_actions_leave_the_rows_alone(env: Any) -> None:
    for actions in (np.zeros(4, int), np.zeros(5), [0, 1], np.full(5, 0.5)):
        if np.shape(actions) != (5,) or np.any(np.asarray(actions) % 1):
            with pytest.raises(ValueError, match="Nothing was stepped"):
                env.step(actions)
    assert not env.step(STEP)[2].any()
