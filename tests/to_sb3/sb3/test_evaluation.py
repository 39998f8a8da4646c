"""Evaluation gives the same returns as over `DummyVecEnv`."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import sb3compat
from tests.lockstep import same
from tests.to_sb3.sb3.training import Source, both, cartpoles, check_same_training, small, weights

pytest.importorskip("stable_baselines3", reason="is about the features of stable-baselines3")

from stable_baselines3 import A2C
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize


@pytest.fixture(scope="module")
def policy() -> Any:
    return A2C("MlpPolicy", DummyVecEnv(cartpoles()), **small())


def at_most(calls: int) -> Any:
    """A callback that ends an evaluation in which no episode ends."""
    counter = itertools.count()

    def callback(_locals: Any, _globals: Any) -> None:
        assert next(counter) < calls

    return callback


@pytest.mark.parametrize("within", [Monitor, None], ids=["monitored", "bare"])
def test_evaluate_policy_gives_the_same_returns(source: Source, policy: Any, within: Any) -> None:
    fns = cartpoles()
    if within:
        fns = [lambda: within(gym.make("CartPole-v1", max_episode_steps=20))] * 3
    results = []
    with both(source, fns) as envs:
        for env in envs:
            env.seed(8)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                returns = evaluate_policy(
                    policy, env, 10, callback=at_most(400), return_episode_rewards=True
                )
            told = ["Monitor" in str(warning.message) for warning in caught]
            assert told.count(True) == (within is None)
            results.append(returns)
    same(results[0], results[1])
    returns, lengths = results[0]
    assert len(returns) == len(lengths) == 10
    assert len(set(lengths)) > 1


def test_evaluate_policy_works_on_native_cartpole(policy: Any) -> None:
    env = VecMonitor(sb3compat.to_sb3(gym.make_vec("CartPole-v1", num_envs=3)))
    env.seed(8)
    returns, lengths = evaluate_policy(
        policy, env, 10, callback=at_most(400), return_episode_rewards=True
    )
    env.close()
    assert returns == lengths
    assert len(set(lengths)) > 1
    assert all(7 < length < 500 for length in lengths)


def test_eval_callback_gives_the_same_results(source: Source, tmp_path: Path) -> None:
    logs = iter(("reference", "ours"))

    def train(env: Any) -> Any:
        folder = tmp_path / next(logs)
        is_reference = isinstance(env, DummyVecEnv)
        fns = [lambda: Monitor(gym.make("CartPole-v1", max_episode_steps=30))] * 2
        evaluated = DummyVecEnv(fns) if is_reference else sb3compat.to_sb3(source(fns))
        evaluated.seed(6)
        callback = EvalCallback(
            VecNormalize(evaluated, training=False, norm_reward=False),
            n_eval_episodes=5,
            eval_freq=40,
            log_path=str(folder),
            best_model_save_path=str(folder),
            verbose=0,
        )
        model = A2C("MlpPolicy", VecNormalize(env), **small())
        with warnings.catch_warnings():
            # SB3 warns where the two environments are of different kinds.
            warnings.simplefilter("error", UserWarning)
            model.learn(480, callback=callback)
        evaluated.close()
        best = A2C.load(folder / "best_model", device="cpu")
        log = np.load(folder / "evaluations.npz")
        return weights(model), weights(best), {name: log[name] for name in log.files}

    check_same_training(source, cartpoles(), train)
    log = np.load(tmp_path / "ours" / "evaluations.npz")
    assert log["timesteps"].tolist() == [120, 240, 360, 480]
    assert len(np.unique(log["results"])) > 2
