"""An algorithm trained on rows in workers ends with the weights that `DummyVecEnv` gives."""

from __future__ import annotations

import pytest

pytest.importorskip("stable_baselines3", reason="trains with stable-baselines3")

from tests.parallel.failing import on_ray
from tests.parallel.teams import forked
from tests.profiles import some
from tests.to_sb3.test_training import check_weights


@pytest.mark.parametrize("name", some(["ppo", "dqn", "sac"], 2))
def test_training_gives_the_same_weights(name: str) -> None:
    check_weights(name, lambda fns: forked(fns, 2))


@pytest.mark.ray
@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize("name", some(["ppo", "dqn", "sac"]))
def test_training_with_actors_gives_the_same_weights(name: str) -> None:
    check_weights(name, lambda fns: on_ray(fns, 2))
