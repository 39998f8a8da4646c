"""RLlib's `SingleAgentEnvRunner` samples from a vector environment: the same episodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.real.environments import makers, same_results, vector_envs

pytest.importorskip("ray.rllib", reason="needs ray[rllib]", exc_type=ImportError)

import gymnasium as gym
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

ROWS = 3


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
def test_episodes_are_the_same(env_id: str) -> None:
    def sample(envs: Any) -> Any:
        # RLlib makes a single environment of that id, too, for its spaces.
        def make(context: Any) -> Any:
            return envs if "num_envs" in context else gym.make(env_id)

        config = (
            PPOConfig()
            .environment(make)
            .env_runners(
                num_env_runners=0,
                num_envs_per_env_runner=ROWS,
                gym_env_vectorize_mode=gym.VectorizeMode.VECTOR_ENTRY_POINT,
            )
            .debugging(seed=3)
        )
        runner = SingleAgentEnvRunner(config=config, worker_index=0)
        envs.action_space.seed(3)
        episodes = runner.sample(num_timesteps=150, random_actions=True)
        episodes += runner.sample(num_timesteps=150)
        return [
            {
                "observations": np.array(episode.get_observations()),
                "actions": np.array(episode.get_actions()),
                # DummyVecEnv rounds rewards to float32; both endings at once are one of them.
                "rewards": np.float32(episode.get_rewards()),
                "terminated": episode.is_terminated,
                "truncated": episode.is_truncated and not episode.is_terminated,
            }
            for episode in episodes
        ]

    # RLlib steps as in NEXT_STEP mode, which is Gymnasium's default.
    episodes = same_results(vector_envs(makers(env_id, ROWS), "NextStep"), sample)
    assert sum(episode["terminated"] or episode["truncated"] for episode in episodes) >= ROWS
