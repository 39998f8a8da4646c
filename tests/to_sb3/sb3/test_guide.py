"""Examples of the guide of SB3: saving and loading, evaluation, attributes, seeds."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import sb3compat
from tests.envs import ScriptedEnv, script
from tests.lockstep import same
from tests.to_sb3.driving import class_of, mode_of
from tests.to_sb3.sb3.training import Source, both, cartpoles, check_same_training, small, weights

pytest.importorskip("stable_baselines3", reason="is about the guide of stable-baselines3")

import torch
from stable_baselines3 import A2C, DQN, SAC, HerReplayBuffer
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import BitFlippingEnv
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor, VecNormalize

# How long an episode lasts at most. Short, so that training sees many endings.
LIMIT = 15
# The helper of SB3 and ours; each takes the arguments of SB3's.
HELPERS: dict[str, Callable[..., VecEnv]] = {
    "reference": make_vec_env,
    "sync": partial(sb3compat.make_vec_env, vectorization_mode="sync"),
    "async": partial(sb3compat.make_vec_env, vectorization_mode="async"),
}


def changed(model: Any, steps: int, **kwargs: Any) -> dict[str, Any]:
    """The weights after training; the training must have changed them."""
    before = weights(model)
    model.learn(steps, **kwargs)
    after = weights(model)
    assert any((before[name] != after[name]).any() for name in before)
    return after


def check_helpers(run: Callable[[VecEnv], Any], env_id: Any, n_envs: int, **kwargs: Any) -> Any:
    """Run the same on the environment of each helper, compare, and return the result."""
    results: dict[str, Any] = {}
    for name, helper in HELPERS.items():
        env = helper(env_id, n_envs, seed=0, **kwargs)
        try:
            results[name] = run(env)
        finally:
            env.close()
        same(results[name], results["reference"], name)
    return results["reference"]


class Steered(ScriptedEnv):
    """Tells the friction that it uses itself."""

    def __init__(self) -> None:
        super().__init__(script())

    def get_mu(self) -> float:
        return self.mu


def test_trained_model_can_be_saved_loaded_and_evaluated(tmp_path: Path) -> None:
    def run(env: VecEnv) -> Any:
        trained = changed(DQN("MlpPolicy", env, learning_starts=20, **small()), 120)
        DQN("MlpPolicy", env, **small()).save(tmp_path / "untrained")
        model = DQN.load(tmp_path / "untrained", env=env, device="cpu")
        assert model.get_env() is env
        model.policy.load_state_dict({k: torch.as_tensor(v) for k, v in trained.items()})
        model.save(tmp_path / "trained")
        model.set_parameters(tmp_path / "untrained", device="cpu")
        assert any((weights(model)[name] != trained[name]).any() for name in trained)
        model.set_parameters(tmp_path / "trained", device="cpu")
        same(weights(model), trained)
        model.policy.save(tmp_path / "policy")
        scores = []
        for which in (model, type(model.policy).load(tmp_path / "policy")):
            env.seed(4)
            scores.append(evaluate_policy(which, model.get_env(), n_eval_episodes=5))
        assert scores[0] == scores[1]
        return trained, scores

    check_helpers(run, "CartPole-v1", 2, env_kwargs={"max_episode_steps": LIMIT})


def test_her_relabels_goals_after_loading(tmp_path: Path) -> None:
    def run(env: VecEnv) -> Any:
        buffer: dict[str, Any] = {"n_sampled_goal": 4, "goal_selection_strategy": "future"}
        model = SAC(
            "MultiInputPolicy",
            env,
            replay_buffer_class=HerReplayBuffer,
            replay_buffer_kwargs=buffer,
            learning_starts=30,
            buffer_size=400,
            batch_size=16,
            **small(),
        )
        trained = changed(model, 60)
        model.save(tmp_path / "her")
        model.save_replay_buffer(tmp_path / "buffer")
        loaded = SAC.load(tmp_path / "her", env=env, device="cpu")
        same(weights(loaded), trained)
        # The buffer asks the environment it is given for the rewards of other goals.
        loaded.load_replay_buffer(tmp_path / "buffer")
        loaded.set_random_seed(2)
        return changed(loaded, 20, reset_num_timesteps=False)

    flipping = partial(BitFlippingEnv, n_bits=5, continuous=True)
    check_helpers(run, flipping, 2)


def test_attributes_are_set_by_a_setter_or_by_set_wrapper_attr() -> None:
    def run(env: VecEnv) -> list[Any]:
        seen = [env.env_method("get_wrapper_attr", "mu")]
        assert env.has_attr("mu")
        assert not env.has_attr("nu")
        env.env_method("set_mu", 0.1)
        env.env_method("set_wrapper_attr", "mu", 0.3, indices=[1])
        seen.append(env.env_method("get_wrapper_attr", "mu"))
        # This goes to the monitor around it, and hides what the environment itself has.
        env.set_attr("mu", 9.0)
        return [*seen, env.get_attr("mu"), env.env_method("get_mu")]

    expected = [[0.5, 0.5], [0.1, 0.3], [9.0, 9.0], [0.1, 0.3]]
    same(check_helpers(run, Steered, 2), expected)


def test_monitors_remember_the_same() -> None:
    def run(env: VecEnv) -> Any:
        env.reset()
        for _ in range(40):
            env.step(np.array([0, 1]))
        times = env.env_method("get_episode_times")
        assert all(row == sorted(row) and len(row) >= 3 for row in times)
        with pytest.warns(UserWarning, match="already wrapped with a `Monitor`"):
            VecMonitor(env)
        names = ("get_total_steps", "get_episode_rewards", "get_episode_lengths")
        return [env.env_method(name) for name in names]

    check_helpers(run, "CartPole-v1", 2)


def seeded(rank: int) -> gym.Env[Any, Any]:
    env = gym.make("CartPole-v1", max_episode_steps=LIMIT)
    env.reset(seed=10 + rank)
    return env


@class_of
@mode_of
def test_seeds_set_by_the_functions_are_kept(cls: Any, mode: AutoresetMode) -> None:
    """A first reset without a seed goes on with the random numbers of the function's own reset."""
    fns: Any = [partial(seeded, rank) for rank in range(3)]
    env = sb3compat.to_sb3(cls(fns, autoreset_mode=mode))
    reference = DummyVecEnv(fns)
    same(env.reset(), reference.reset())
    for _ in range(2 * LIMIT):
        same(env.step(np.array([0, 1, 1])), reference.step(np.array([0, 1, 1])))
    env.close()


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
