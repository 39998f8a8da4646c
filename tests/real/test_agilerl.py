"""AgileRL trains DQN on a vector environment: the same weights and scores."""

from __future__ import annotations

from typing import Any

import pytest

from tests.real.environments import makers, same_results, vector_envs

pytest.importorskip("agilerl", reason="needs agilerl")

from agilerl.algorithms.dqn import DQN
from agilerl.components.replay_buffer import ReplayBuffer
from agilerl.training.train_off_policy import train_off_policy


@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
def test_dqn_learns_the_same(mode: str) -> None:
    def train(envs: Any) -> Any:
        envs.reset(seed=3)
        agent = DQN(
            envs.single_observation_space, envs.single_action_space, batch_size=32, learn_step=4
        )
        (trained,), scores = train_off_policy(
            envs,
            "CartPole-v1",
            "DQN",
            [agent],
            ReplayBuffer(1_000),
            max_steps=600,
            evo_steps=300,
            eval_steps=40,
            eps_start=0.8,
            verbose=False,
        )
        return {"actor": trained.actor, "scores": scores}

    result = same_results(vector_envs(makers("CartPole-v1", 4), mode), train)
    assert result["scores"]
