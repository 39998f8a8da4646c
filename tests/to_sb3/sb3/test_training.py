"""Training gives the same weights as over `DummyVecEnv`."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import sb3compat
from tests.envs import BOX, ScriptedEnv, script
from tests.lockstep import same
from tests.native import NativeEnv
from tests.to_sb3.sb3.training import (
    EnvFns,
    Source,
    both,
    cartpoles,
    check_same_training,
    learn,
    scripted,
    small,
    weights,
)

pytest.importorskip("stable_baselines3", reason="is about the features of stable-baselines3")

from stable_baselines3 import A2C, DDPG, DQN, SAC, TD3, HerReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.envs import BitFlippingEnv
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


OFF_POLICY: dict[str, Any] = {
    "dqn": (DQN, "CartPole-v1", {"target_update_interval": 20}),
    "sac": (SAC, "Pendulum-v1", {}),
    "td3": (TD3, "Pendulum-v1", {}),
    "ddpg": (DDPG, "Pendulum-v1", {}),
}


@pytest.mark.parametrize("name", OFF_POLICY)
def test_off_policy_training_gives_the_same_weights(any_source: Source, name: str) -> None:
    algorithm, env_id, kwargs = OFF_POLICY[name]
    fns: EnvFns = [partial(gym.make, env_id, max_episode_steps=15)] * 2
    train = learn(algorithm, 120, learning_starts=40, buffer_size=200, batch_size=32, **kwargs)
    check_same_training(any_source, fns, train)


CONTRIB: dict[str, Any] = {
    "ARS": ("CartPole-v1", {"n_delta": 3}),
    "CrossQ": ("Pendulum-v1", {"learning_starts": 40, "batch_size": 32}),
    "QRDQN": ("CartPole-v1", {"learning_starts": 40, "target_update_interval": 20}),
    "RecurrentPPO": ("CartPole-v1", {"n_steps": 20, "batch_size": 20, "n_epochs": 2}),
    "TQC": ("Pendulum-v1", {"learning_starts": 40, "batch_size": 32}),
    "TRPO": ("CartPole-v1", {"n_steps": 30, "batch_size": 30}),
}


@pytest.mark.parametrize("name", CONTRIB)
def test_sb3_contrib_training_gives_the_same_weights(source: Source, name: str) -> None:
    contrib = pytest.importorskip("sb3_contrib")
    if not hasattr(contrib, name):
        pytest.skip(f"this sb3-contrib has no {name}")
    env_id, kwargs = CONTRIB[name]
    policy = "MlpLstmPolicy" if name == "RecurrentPPO" else "MlpPolicy"
    fns: EnvFns = [partial(gym.make, env_id, max_episode_steps=15)] * 2
    check_same_training(source, fns, learn(getattr(contrib, name), 120, policy=policy, **kwargs))


@pytest.mark.parametrize("copy_info_dict", [False, True])
def test_her_training_gives_the_same_weights(source: Source, copy_info_dict: bool) -> None:
    train = learn(
        DQN,
        120,
        policy="MultiInputPolicy",
        replay_buffer_class=HerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": 4, "copy_info_dict": copy_info_dict},
        learning_starts=40,
        buffer_size=400,
        batch_size=32,
    )
    check_same_training(source, [partial(BitFlippingEnv, n_bits=5)] * 2, train)


class Masked(gym.Env[Any, Any]):
    """One action is forbidden at each step, another one each time; a lock cannot be pickled."""

    observation_space = BOX
    action_space = spaces.Discrete(4)

    def __init__(self, row: int) -> None:
        self.row = row
        self.lock = threading.Lock()

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return self._obs(), {}

    def step(self, action: Any) -> Any:
        assert self.action_masks()[action], "a forbidden action"
        self.steps += 1
        return self._obs(), float(action == self.steps % 4), False, self.steps == 5 + self.row, {}

    def action_masks(self) -> Any:
        mask = np.ones(4, np.bool_)
        mask[(self.steps + self.row) % 4] = False
        return mask

    def _obs(self) -> Any:
        return self.np_random.random(3, np.float32)


class MaskedRows(NativeEnv):
    """A native environment that gives the masks of all rows at once."""

    def action_masks(self) -> Any:
        return np.stack([row.action_masks() for row in self._rows])


def train_masked(env: Any) -> Any:
    contrib = pytest.importorskip("sb3_contrib")
    kwargs = {"n_steps": 20, "batch_size": 20, "n_epochs": 2}
    return learn(contrib.MaskablePPO, 120, **kwargs)(env)


def test_action_masks_of_sub_environments_are_used(source: Source) -> None:
    check_same_training(source, [partial(Masked, row) for row in range(3)], train_masked)


def test_action_masks_of_a_native_environment_are_used() -> None:
    native = partial(MaskedRows, mode=AutoresetMode.NEXT_STEP)
    check_same_training(native, [partial(Masked, row) for row in range(3)], train_masked)


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
