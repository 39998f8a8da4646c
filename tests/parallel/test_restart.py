"""`on_worker_lost="restart"`: lost workers are replaced."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

import sb3compat
from tests.parallel.failing import ACTIONS, OPENED, N, opened, pids, with_pids
from tests.parallel.known import Known
from tests.parallel.teams import forked

pytestmark = pytest.mark.usefixtures("nobody_is_left")


def test_rows_of_a_lost_worker_end_as_truncated() -> None:
    env = opened(with_pids(), on_worker_lost="restart")
    before = env.step(ACTIONS)[0].copy()
    held = env.step(ACTIONS)[0]
    last = held.copy()
    held[...] = 9  # what a user does with the observations has no effect
    os.kill(pids(env)[1], signal.SIGKILL)
    obs, rewards, dones, infos = env.step(ACTIONS)
    assert not np.array_equal(before, last)
    assert dones.tolist() == [True] * 5  # the others by their script
    assert rewards[3:].tolist() == [0, 0]
    for row in (3, 4):
        assert infos[row].keys() == {
            "sb3compat.worker_lost", "TimeLimit.truncated", "terminal_observation",
        }  # fmt: skip
        assert infos[row]["TimeLimit.truncated"] is True
        assert infos[row]["sb3compat.worker_lost"] is True
        np.testing.assert_array_equal(infos[row]["terminal_observation"], last[row])
        assert env.reset_infos[row]["resets"] == 1
    assert all("sb3compat.worker_lost" not in infos[row] for row in range(3))
    fresh = Known(3)
    np.testing.assert_array_equal(obs[3], fresh.reset()[0])
    assert not env.step(ACTIONS)[2].any()


def test_loss_before_the_first_reset_is_an_error_and_a_reset_goes_on() -> None:
    env = forked(with_pids(), 2, on_worker_lost="restart")
    OPENED.append(env)
    os.kill(pids(env)[0], signal.SIGKILL)
    with pytest.raises(sb3compat.WorkerError, match="rows 0 to 2"):
        env.step(ACTIONS)
    env.reset()
    env.step(ACTIONS)


def test_method_of_a_lost_worker_is_an_error_until_the_next_step() -> None:
    env = opened(with_pids(), on_worker_lost="restart")
    os.kill(pids(env)[0], signal.SIGKILL)
    with pytest.raises(sb3compat.WorkerError, match="rows 0 to 2 has died"):
        env.get_attr("row")
    assert env.get_attr("row", indices=[4]) == [4]
    assert env.step(ACTIONS)[2][:3].all()
    assert env.get_attr("row") == list(range(N))
