"""Where the time goes: measured when asked for, and recorded in the logger of a real training."""

from __future__ import annotations

import os
import signal
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import sb3compat
from tests.interrupts import counting
from tests.parallel.failing import opened
from tests.parallel.teams import children, forked

pytestmark = pytest.mark.usefixtures("nobody_is_left")


@pytest.mark.parametrize("parent_steps", [False, True])
def test_steps_are_measured_from_the_first_call_on(
    parent_steps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []

    def clock() -> float:
        """A second more with each look."""
        looks.append(len(looks) + 1.0)
        return looks[-1]

    monkeypatch.setattr("sb3compat._parallel.worker.time.perf_counter", clock)
    env = opened(counting(4), 2 - parent_steps, make=forked, parent_steps=parent_steps)
    actions = np.zeros(4, int)
    env.step(actions)
    assert not looks  # nobody has asked
    first = env.worker_times()
    assert (first.stepped.tolist(), first.waited, first.steps) == ([0, 0], 0, 0)
    for _ in range(3):
        env.step(actions)
    times = env.worker_times()
    # Each step reads the clock twice; that of this process includes its rows.
    assert times.stepped.tolist() == [3, 3]
    assert (times.waited, times.steps, times.restarts) == (9 if parent_steps else 3, 3, 0)
    env.step(actions)
    assert env.worker_times().stepped.tolist() == [4, 4]
    assert first.steps == 0  # no view


def test_restarts_are_counted() -> None:
    env = opened(counting(2), 2, make=forked, on_worker_lost="restart")
    assert env.worker_times().restarts == 0
    os.kill(children()[-1], signal.SIGKILL)
    env.step(np.zeros(2, int))
    assert env.worker_times().restarts == 1


def test_training_records_where_its_time_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    sb3: Any = pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import VecMonitor

    env = opened([lambda: gym.make("CartPole-v1")] * 4, 2, make=forked)
    model = sb3.PPO("MlpPolicy", VecMonitor(env), n_steps=4, batch_size=16, n_epochs=1)
    recorded: dict[str, Any] = {}
    dump = sb3.common.logger.Logger.dump
    monkeypatch.setattr(
        sb3.common.logger.Logger,
        "dump",
        lambda self, step=0: (recorded.update(self.name_to_value), dump(self, step))[1],
    )
    model.learn(32, callback=sb3compat.WorkerStats(seconds=1e-9))
    own = {name: value for name, value in recorded.items() if name.startswith("workers/")}
    assert {*own} == {
        *(f"workers/{name}" for name in ("wait_share", "busy_share", "restarts")),
        *(f"workers/step_ms/{worker}" for worker in range(2)),
    }
    assert 0 < own["workers/busy_share"] < 1
    assert 0 < own["workers/wait_share"] < 1
    assert own["workers/step_ms/0"] > 0
    assert own["workers/restarts"] == 0


def test_another_environment_is_refused() -> None:
    sb3: Any = pytest.importorskip("stable_baselines3")
    model = sb3.PPO("MlpPolicy", "CartPole-v1", n_steps=8, batch_size=8)
    with pytest.raises(sb3compat.UnsupportedEnvError, match="vectorization_mode='parallel'"):
        model.learn(8, callback=sb3compat.WorkerStats())
