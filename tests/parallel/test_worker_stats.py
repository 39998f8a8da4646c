"""Where the time goes: measured when asked for, and recorded in the logger of a real training."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import sb3compat
from tests.interrupts import counting
from tests.parallel.failing import WorkerProcess, opened
from tests.parallel.teams import children, forked


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


def test_restarts_are_counted_and_the_new_worker_is_measured() -> None:
    env = opened(counting(2), 2, make=forked, on_worker_lost="restart")
    assert env.worker_times().restarts == 0
    WorkerProcess(children()[-1]).kill()
    assert env.worker_times().restarts == 0  # it is replaced by the next step
    env.step(np.zeros(2, int))
    before = env.worker_times()
    env.step(np.zeros(2, int))
    after = env.worker_times()
    assert after.restarts == 1
    assert (after.stepped > before.stepped).all()


def test_times_are_recorded_but_for_that_of_a_lost_worker() -> None:
    sb3: Any = pytest.importorskip("stable_baselines3")
    env = opened([lambda: gym.make("CartPole-v1")] * 2, 2, make=forked, on_worker_lost="restart")
    wrapped = sb3.common.vec_env.VecMonitor(env)
    model, stats = sb3.PPO("MlpPolicy", wrapped), sb3compat.WorkerStats(seconds=1e-9)
    model.set_logger(sb3.common.logger.Logger(None, []))
    stats.init_callback(model)
    stats.on_training_start({}, {})

    def recorded() -> dict[str, float]:
        model.logger.dump()  # forgets what was recorded
        stats.on_rollout_end()
        return {**model.logger.name_to_value}

    env.reset()
    env.step([0, 0])
    first = recorded()
    names = ("wait_share", "busy_share", "restarts", "step_ms/0", "step_ms/1")
    assert first.keys() == {f"workers/{name}" for name in names}
    assert 0 < first["workers/busy_share"] < 1
    assert 0 < first["workers/wait_share"] < 1
    assert first["workers/step_ms/0"] > 0
    assert first["workers/restarts"] == 0
    env.step([0, 0])
    WorkerProcess(children()[-1]).kill()
    assert recorded().keys() == {"workers/restarts"}  # it has not answered
    env.step([0, 0])
    assert recorded().keys() == {"workers/restarts"}  # it has been replaced
    env.step([0, 0])
    assert len(recorded()) == 5


def test_another_environment_is_refused() -> None:
    sb3: Any = pytest.importorskip("stable_baselines3")
    model = sb3.PPO("MlpPolicy", "CartPole-v1", n_steps=8, batch_size=8)
    with pytest.raises(sb3compat.UnsupportedEnvError, match="vectorization_mode='parallel'"):
        model.learn(8, callback=sb3compat.WorkerStats())
