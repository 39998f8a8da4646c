"""`imitation` records an expert and imitates it on an adapted environment: the same throughout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.real.environments import Make, makers, same_results, sb3_envs

pytest.importorskip("imitation", reason="needs imitation")

from imitation.algorithms.adversarial.gail import GAIL
from imitation.data import rollout
from imitation.data.wrappers import RolloutInfoWrapper
from imitation.rewards.reward_nets import BasicRewardNet
from stable_baselines3 import PPO


def recorded(fns: list[Make]) -> list[Make]:
    return [lambda fn=fn: RolloutInfoWrapper(fn()) for fn in fns]


def demonstrations(env: Any, seed: int = 3) -> Any:
    expert = PPO("MlpPolicy", env, n_steps=32, batch_size=32, seed=seed, device="cpu").learn(64)
    enough = rollout.make_sample_until(min_episodes=6)
    return rollout.rollout(expert, env, enough, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
def test_trajectories_and_adversarial_training_are_the_same(env_id: str) -> None:
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
        parts = [(t.obs, t.acts, t.terminal) for t in trajectories]
        return {"trajectories": parts, "policy": learner.policy, "reward": trainer.reward_train}

    result = same_results(sb3_envs(recorded(makers(env_id, 2))), train)
    assert len(result["trajectories"]) >= 6
