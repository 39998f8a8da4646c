"""An algorithm trained on rows in workers ends with the weights that `DummyVecEnv` gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("stable_baselines3", reason="trains with stable-baselines3")

import torch
from stable_baselines3 import SAC

from tests.parallel.actors import on_ray
from tests.parallel.teams import forked
from tests.profiles import some
from tests.to_sb3.test_weights import TASKS, Task, _one_thread, env_fns, reference, train

assert _one_thread  # a fixture for each module that trains

SAC_TASK = Task(
    SAC, "Pendulum-v1", 3, 300, (("buffer_size", 500), ("learning_starts", 60), ("batch_size", 32))
)


@pytest.mark.parametrize(("name", "workers"), [("ppo", 3), ("a2c", 2), ("dqn", 2), ("sac", 2)])
def test_training_gives_the_same_weights(name: str, workers: int) -> None:
    check_weights(name, lambda fns: forked(fns, workers))


@pytest.mark.ray
@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize("name", some(["ppo", "a2c", "dqn", "sac"]))
def test_training_with_actors_gives_the_same_weights(name: str) -> None:
    check_weights(name, lambda fns: on_ray(fns, 2))


def check_weights(name: str, build: Callable[[Any], Any]) -> None:
    task = SAC_TASK if name == "sac" else TASKS[name]
    expected = reference(task)
    ours = train(task, build(env_fns(task)))
    assert ours.endings == expected.endings
    assert expected.endings["truncated"]
    different = [
        name for name, tensor in expected.after.items() if not torch.equal(ours.after[name], tensor)
    ]
    assert not different
    assert any(not torch.equal(expected.before[key], expected.after[key]) for key in ours.after)
