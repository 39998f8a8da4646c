"""`imitation` records an expert and imitates it on an adapted environment: the same throughout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.real.environments import Make, makers, same_results, sb3_envs

pytest.importorskip("imitation", reason="needs imitation")

from imitation.algorithms import bc
from imitation.algorithms.adversarial.gail import GAIL
from imitation.data import rollout
from imitation.data.wrappers import RolloutInfoWrapper
from imitation.rewards.reward_nets import BasicRewardNet
from stable_baselines3 import PPO


def recorded(fns: list[Make]) -> list[Make]:
    return [lambda fn=fn: RolloutInfoWrapper(fn()) for fn in fns]  # type: ignore[misc]


def demonstrations(env: Any, seed: int = 3) -> Any:
    expert = PPO("MlpPolicy", env, n_steps=32, batch_size=32, seed=seed, device="cpu").learn(64)
    enough = rollout.make_sample_until(min_episodes=6)
    return rollout.rollout(expert, env, enough, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
def test_trajectories_and_cloned_weights_are_the_same(env_id: str) -> None:
    def train(env: Any) -> Any:
        trajectories = demonstrations(env)
        trainer = bc.BC(
            observation_space=env.observation_space,
            action_space=env.action_space,
            demonstrations=rollout.flatten_trajectories(trajectories),
            rng=np.random.default_rng(3),
            batch_size=16,
        )
        trainer.train(n_batches=20, progress_bar=False)
        parts = [(t.obs, t.acts, t.terminal) for t in trajectories]
        return {"trajectories": parts, "policy": trainer.policy}

    result = same_results(sb3_envs(recorded(makers(env_id, 2))), train)
    assert len(result["trajectories"]) >= 6


def test_adversarial_training_is_the_same() -> None:
    def train(env: Any) -> Any:
        trajectories = demonstrations(env)
        env.seed(3)
        learner = PPO("MlpPolicy", env, n_steps=32, batch_size=32, seed=3, device="cpu")
        trainer = GAIL(
            demonstrations=trajectories,
            demo_batch_size=32,
            venv=env,
            gen_algo=learner,
            reward_net=BasicRewardNet(env.observation_space, env.action_space),
            allow_variable_horizon=True,
        )
        trainer.train(128)
        return {"policy": learner.policy, "reward": trainer.reward_train}

    same_results(sb3_envs(recorded(makers("CartPole-v1", 2))), train)
