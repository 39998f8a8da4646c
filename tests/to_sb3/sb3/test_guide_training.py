"""The examples of the guide of Stable-Baselines3 about training, saving and loading."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.lockstep import same
from tests.to_sb3.sb3.guide import HELPERS, LIMIT, changed, check_helpers, play
from tests.to_sb3.sb3.training import small, weights

pytest.importorskip("stable_baselines3", reason="is about the guide of stable-baselines3")

import torch
from stable_baselines3 import A2C, DQN, SAC, TD3, HerReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.envs import BitFlippingEnv
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import load_results
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.results_plotter import ts2xy
from stable_baselines3.common.vec_env import VecEnv


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


def test_parameters_of_a_population_can_be_evolved() -> None:
    def run(env: VecEnv) -> Any:
        model = A2C("MlpPolicy", env, **small())
        changed(model, 60)
        mean = {k: v for k, v in model.policy.state_dict().items() if "value" not in k}
        torch.manual_seed(1)
        scores = []
        for _ in range(4):
            mutant = {name: value + torch.randn_like(value) for name, value in mean.items()}
            model.policy.load_state_dict(mutant, strict=False)
            scores.append(evaluate_policy(model, model.get_env(), n_eval_episodes=4)[0])
        return scores

    scores = check_helpers(run, "CartPole-v1", 2, env_kwargs={"max_episode_steps": 60})
    assert len(set(scores)) > 1


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


SCRIPT = """
import gymnasium as gym
import numpy as np

class Ten(gym.Env):
    observation_space = gym.spaces.Box(0, 10, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        return np.full(1, self.steps, np.float32), 1.0, self.steps == 10, False, {}

if __name__ == "__main__":
    import sb3compat
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import SubprocVecEnv

    env = sb3compat.make_vec_env(
        Ten, 2, vec_env_cls=SubprocVecEnv, vec_env_kwargs={"start_method": "spawn"}
    )
    model = PPO("MlpPolicy", env, n_steps=16, batch_size=16, n_epochs=1, device="cpu").learn(64)
    print([episode["l"] for episode in model.ep_info_buffer])
    print({type(process).__name__ for process in env.env.processes})
    env.close()
"""


def test_training_works_in_spawned_processes(tmp_path: Path) -> None:
    """The environment's class is in the main script, which guards its own part by `__main__`."""
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str([10] * 6), "{'SpawnProcess'}"]


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
