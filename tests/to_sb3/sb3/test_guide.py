"""Examples of the guide of SB3: training, saving and loading, attributes, seeds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import sb3compat
from tests.lockstep import same
from tests.to_sb3.sb3.training import small, weights

pytest.importorskip("stable_baselines3", reason="is about the guide of stable-baselines3")

import torch
from stable_baselines3 import DQN, SAC, TD3, HerReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import BitFlippingEnv
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import load_results
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.results_plotter import ts2xy
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor

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


def play(model: Any, env: Any, steps: int = 40) -> list[Any]:
    """The loop in which a trained agent is watched; seconds are left out."""
    obs = env.reset()
    record = [obs]
    for _ in range(steps):
        actions, _ = model.predict(obs, deterministic=True)
        obs, rewards, dones, infos = env.step(actions)
        infos = [{k: v for k, v in info.items() if k != "episode"} for info in infos]
        record.append((obs, rewards, dones, infos))
    return record


def test_trained_model_can_be_saved_loaded_and_watched(tmp_path: Path) -> None:
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
        env.seed(4)
        score = evaluate_policy(model, model.get_env(), n_eval_episodes=5)
        return trained, score, play(model, model.get_env()), env.render()

    pytest.importorskip("pygame", reason="draws CartPole")
    check_helpers(run, "CartPole-v1", 2, env_kwargs={"max_episode_steps": LIMIT})


def test_buffers_and_policies_can_be_saved_and_loaded_alone(tmp_path: Path) -> None:
    def run(env: VecEnv) -> Any:
        model = SAC("MlpPolicy", env, learning_starts=30, batch_size=16, **small())
        trained = changed(model, 80)
        model.save(tmp_path / "model")
        model.save_replay_buffer(tmp_path / "buffer")
        model.policy.save(tmp_path / "policy")
        loaded = SAC.load(tmp_path / "model", device="cpu")
        assert loaded.replay_buffer.size() == 0
        loaded.load_replay_buffer(tmp_path / "buffer")
        assert loaded.replay_buffer.size() == 40
        policy = type(model.policy).load(tmp_path / "policy")
        scores = []
        for which in (model.policy, policy):
            env.seed(1)
            scores.append(evaluate_policy(which, model.get_env(), n_eval_episodes=4))
        assert scores[0] == scores[1]
        loaded.set_env(env)
        loaded.set_random_seed(2)
        return trained, scores, changed(loaded, 40, reset_num_timesteps=True)

    check_helpers(run, "Pendulum-v1", 2, env_kwargs={"max_episode_steps": LIMIT})


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
        return play(loaded, env), changed(loaded, 20, reset_num_timesteps=False)

    flipping = partial(BitFlippingEnv, n_bits=5, continuous=True)
    check_helpers(run, flipping, 2)


class SaveBest(BaseCallback):
    """Save the model when the returns in the monitor's files have increased."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.best = -np.inf
        self.history: list[tuple[int, float]] = []

    def _on_step(self) -> bool:
        if self.n_calls % 20 == 0:
            steps, returns = ts2xy(load_results(str(self.folder)), "timesteps")
            self.history.append((int(steps[-1]), float(np.mean(returns[-100:]))))
            if self.history[-1][1] > self.best:
                self.best = self.history[-1][1]
                self.model.save(self.folder / "best")
        return True


def test_monitor_files_can_be_read_during_training(tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="SB3 reads its csv files with it")
    results = []
    for name, helper in HELPERS.items():
        folder = tmp_path / name
        kwargs: dict[str, Any] = {"env_kwargs": {"max_episode_steps": LIMIT}, "seed": 0}
        env = helper("Pendulum-v1", 1, monitor_dir=str(folder), **kwargs)
        noise = NormalActionNoise(np.zeros(1), 0.1 * np.ones(1))
        model = TD3("MlpPolicy", env, action_noise=noise, learning_starts=30, **small())
        callback = SaveBest(folder)
        trained = changed(model, 100, callback=callback)
        env.close()
        best = weights(TD3.load(folder / "best", device="cpu"))
        results.append((trained, callback.history, best))
        assert [steps for steps, _ in callback.history] == [15, 30, 60, 75, 90]
    same(results[1], results[0])
    same(results[2], results[0])


class MultiTask(gym.Env[Any, Any]):
    """Its friction can be changed at any time, with effect from the next episode on."""

    observation_space = spaces.Box(0, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self.mu = 0.5
        self.steps = 0
        self.used = 0.0

    def set_mu(self, mu: float) -> None:
        self.mu = mu

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps, self.used = 0, self.mu
        return self.np_random.random(2, np.float32), {"used": self.used}

    def step(self, action: Any) -> Any:
        self.steps += 1
        obs = self.np_random.random(2, np.float32)
        return obs, self.used, False, self.steps == 4, {"used": self.used}


def test_attributes_are_set_by_a_setter_or_by_set_wrapper_attr() -> None:
    def run(env: VecEnv) -> list[Any]:
        seen = [env.env_method("get_wrapper_attr", "mu")]
        assert env.has_attr("mu")
        assert not env.has_attr("nu")
        env.env_method("set_mu", 0.1)
        env.env_method("set_wrapper_attr", "mu", 0.3, indices=[1])
        seen.append(env.env_method("get_wrapper_attr", "mu"))
        env.reset()
        seen.append(list(env.step(np.zeros(2, int))[1]))
        # This goes to the monitor around it, and hides what the environment itself uses.
        env.set_attr("mu", 9.0)
        seen.append(env.get_attr("mu"))
        env.reset()
        seen.append(list(env.step(np.zeros(2, int))[1]))
        return seen

    f = np.float32
    expected = [[0.5, 0.5], [0.1, 0.3], [f(0.1), f(0.3)], [9.0, 9.0], [f(0.1), f(0.3)]]
    same(check_helpers(run, MultiTask, 2), expected)


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


@pytest.mark.parametrize("cls", [SyncVectorEnv, AsyncVectorEnv])
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_seeds_set_by_the_functions_are_kept(cls: Any, mode: AutoresetMode) -> None:
    """A first reset without a seed goes on with the random numbers of the function's own reset."""
    fns: Any = [partial(seeded, rank) for rank in range(3)]
    env = sb3compat.to_sb3(cls(fns, autoreset_mode=mode))
    reference = DummyVecEnv(fns)
    same(env.reset(), reference.reset())
    for _ in range(2 * LIMIT):
        same(env.step(np.array([0, 1, 1])), reference.step(np.array([0, 1, 1])))
    env.close()
