"""Training gives the same weights as over `DummyVecEnv`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import sb3compat
from tests.envs import Identity, ScriptedEnv, script
from tests.lockstep import same
from tests.native import NativeEnv
from tests.profiles import nightly
from tests.to_sb3.sb3.training import (
    SOURCES,
    EnvFns,
    Source,
    both,
    cartpoles,
    check_same_training,
    scripted,
    small,
    weights,
)
from tests.to_sb3.sb3.trainings import TRAININGS, check_weights

pytest.importorskip("stable_baselines3", reason="is about the features of stable-baselines3")

from stable_baselines3 import A2C
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor


class EndingsByLimit(BaseCallback):
    """Count truncated episodes."""

    count = 0

    def _on_step(self) -> bool:
        self.count += sum(info["TimeLimit.truncated"] for info in self.locals["infos"])
        return True


def test_training_goes_on_the_same_after_save_load_and_set_env(
    any_source: Source, tmp_path: Path
) -> None:
    def make(env: Any, fns: EnvFns) -> Any:
        if isinstance(env, DummyVecEnv):
            return DummyVecEnv(fns)
        return sb3compat.to_sb3(any_source(fns))

    def train(env: Any) -> Any:
        model = A2C("MlpPolicy", env, **small()).learn(60)
        model.save(tmp_path / "model")
        second, third, fewer = (
            make(env, cartpoles(n, limit)) for n, limit in ((3, 9), (3, 15), (2, 9))
        )
        seen = EndingsByLimit()
        loaded = A2C.load(tmp_path / "model", env=second, device="cpu")
        same(weights(loaded), weights(model))
        loaded.set_random_seed(4)
        loaded.learn(150, callback=seen, reset_num_timesteps=False)
        assert loaded.get_env() is second
        assert seen.count > 0
        halfway = weights(loaded)
        third.seed(9)
        loaded.set_env(third)
        loaded.learn(90, reset_num_timesteps=False)
        assert loaded.get_env() is third
        assert loaded.num_timesteps == 300
        with pytest.raises(AssertionError, match="number of environments"):
            loaded.set_env(fewer)
        for other in (second, third, fewer):
            other.close()
        return halfway, weights(loaded)

    check_same_training(any_source, cartpoles(), train)


def test_learning_goes_on_without_a_reset(any_source: Source) -> None:
    def train(env: Any) -> Any:
        model = A2C("MlpPolicy", env, **small()).learn(45)
        model.set_env(env, force_reset=False)
        return model.learn(45, reset_num_timesteps=False)

    check_same_training(any_source, cartpoles(), train)


SOURCES_HERE: dict[str, Any] = {
    **SOURCES,
    "sync-disabled": partial(SyncVectorEnv, autoreset_mode=AutoresetMode.DISABLED),
    "async-unshared": partial(AsyncVectorEnv, shared_memory=False),
    # Under a wrapper, the vector environment's own `step` and `reset` are used.
    "wrapped": lambda fns: Identity(SyncVectorEnv(fns)),
}
# Equal streams, which are compared elsewhere, give equal weights.
IN_CI = [
    ("ppo", "async-next"),
    ("ppo-dict", "wrapped"),
    ("dqn", "sync-same"),
    ("sac", "adapter"),
    ("her-infos", "async-unshared"),
    ("masked-ppo", "async-next"),
    ("recurrent-ppo", "sync-next"),
]
EVERY = [(name, source) for name in TRAININGS for source in SOURCES_HERE]


@pytest.mark.parametrize(("name", "source"), EVERY if nightly() else IN_CI)
# In `ppo-dict`, the agent may well stand where it started between two episodes.
@pytest.mark.filterwarnings("ignore:The last observation of row")
def test_training_gives_the_same_weights(name: str, source: str) -> None:
    check_weights(name, lambda fns: sb3compat.to_sb3(SOURCES_HERE[source](fns)))


class MaskedRows(NativeEnv):
    """A native environment that gives the masks of all rows at once."""

    def action_masks(self) -> Any:
        return np.stack([row.action_masks() for row in self._rows])


def test_action_masks_of_a_native_environment_are_used() -> None:
    native = partial(MaskedRows, mode=AutoresetMode.NEXT_STEP)
    check_weights("masked-ppo", lambda fns: sb3compat.to_sb3(native(fns)))


def test_missing_action_masks_are_noticed(source: Source) -> None:
    contrib = pytest.importorskip("sb3_contrib")
    with both(source, scripted()) as envs:
        for env in envs:
            model = contrib.MaskablePPO("MlpPolicy", env, n_steps=4, batch_size=12, **small())
            with pytest.raises(ValueError, match="does not support action masking"):
                model.learn(4)
            env.reset()  # and no worker died of the question


class Steered(ScriptedEnv):
    """Its reward depends on `mu`, which has a setter."""

    def step(self, action: Any) -> Any:
        obs, _, terminated, truncated, info = super().step(action)
        return obs, self.mu + int(action), terminated, truncated, info


class Steering(BaseCallback):
    """Change the environments during training; remember the rewards without actions."""

    def __init__(self) -> None:
        super().__init__()
        self.paid: list[list[float]] = []
        self.answers: list[Any] = []

    def _on_step(self) -> bool:
        paid = self.locals["rewards"] - self.locals["actions"].reshape(-1)
        self.paid.append(np.round(paid, 4).tolist())
        if self.n_calls == 4:
            self.answers += self.training_env.env_method("set_mu", 0.1)
        if self.n_calls == 7:
            self.answers += self.training_env.env_method("set_mu", 3.0, indices=[1])
        if self.n_calls == 9:
            self.training_env.set_attr("mu", 7.0, indices=0)
        return True


def test_setters_called_during_training_take_effect(source: Source) -> None:
    fns: EnvFns = [partial(Steered, script(), row) for row in range(2)]
    changes = []

    def train(env: Any) -> Any:
        steering = Steering()
        model = A2C("MlpPolicy", VecMonitor(env), **small()).learn(24, callback=steering)
        changes.append(steering)
        return weights(model)

    check_same_training(source, fns, train)
    for steering in changes:
        expected = [0.5, 0.5, 0.5, 0.5, *[0.1] * 5, 7.0, 7.0, 7.0]
        assert [row[0] for row in steering.paid[:12]] == pytest.approx(expected)
        expected = [0.5, 0.5, 0.5, 0.5, 0.1, 0.1, 0.1, *[3.0] * 5]
        assert [row[1] for row in steering.paid[:12]] == pytest.approx(expected)
        assert steering.answers == [0.1, 1.1, 4.0]
