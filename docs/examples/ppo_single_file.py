"""PPO in a single file, for any Gymnasium vector environment in NEXT_STEP or SAME_STEP mode.

Nothing in the training loop knows of Stable-Baselines3, but the environment that it learns is a
`DummyVecEnv`. torch is all it needs besides.

    python ppo_single_file.py NextStep --steps 80000
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import nn

import sb3compat

ROLLOUT, EPOCHS, MINIBATCHES = 128, 4, 4
GAMMA, LAMBDA, CLIP, ENTROPY = 0.99, 0.95, 0.2, 0.01


class Agent(nn.Module):
    """A policy and a value function."""

    def __init__(self, observations: int, actions: int) -> None:
        super().__init__()
        self.policy = nn.Sequential(
            nn.Linear(observations, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(),
            nn.Linear(64, actions),
        )  # fmt: skip
        self.value = nn.Sequential(
            nn.Linear(observations, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
        )

    def distribution(self, observations: torch.Tensor) -> torch.distributions.Categorical:
        """The actions' probabilities."""
        return torch.distributions.Categorical(logits=self.policy(observations))


def train(envs: VectorEnv[Any, Any, Any], total_steps: int, seed: int = 0) -> list[float]:
    """Train an agent, and return the returns of all episodes in the order in which they ended."""
    torch.manual_seed(seed)
    mode, n = envs.metadata["autoreset_mode"], envs.num_envs
    assert mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)
    observations: Any = envs.single_observation_space
    actions_space: Any = envs.single_action_space
    agent = Agent(observations.shape[0], int(actions_space.n))
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3, eps=1e-5)
    finished: list[float] = []
    returns = np.zeros(n)
    obs, _ = envs.reset(seed=seed)
    resetting = np.zeros(n, bool)  # rows whose action this step ignores, in NEXT_STEP mode

    for _ in range(total_steps // (ROLLOUT * n)):
        rollout: dict[str, list[Any]] = {key: [] for key in (
            "obs", "successors", "actions", "logprobs", "rewards", "terminated", "done", "valid"
        )}  # fmt: skip
        for _ in range(ROLLOUT):
            with torch.no_grad():
                distribution = agent.distribution(torch.as_tensor(obs))
                actions = distribution.sample()
            next_obs, rewards, terminations, truncations, infos = envs.step(actions.numpy())
            done = terminations | truncations
            # What the action has led to. In NEXT_STEP mode that is what step returns; in SAME_STEP
            # mode, the last observation of an episode is elsewhere.
            successors = next_obs.copy()
            if mode == AutoresetMode.SAME_STEP and done.any():
                successors[done] = np.stack(infos["final_obs"][done])
            rollout["obs"].append(obs)
            rollout["successors"].append(successors)
            rollout["actions"].append(actions)
            rollout["logprobs"].append(distribution.log_prob(actions))
            rollout["rewards"].append(rewards)
            rollout["terminated"].append(terminations)
            rollout["done"].append(done)
            rollout["valid"].append(~resetting)
            returns += rewards
            finished += returns[done].tolist()
            returns[done] = 0
            obs = next_obs
            resetting = done if mode == AutoresetMode.NEXT_STEP else np.zeros(n, bool)
        update(agent, optimizer, {
            key: torch.as_tensor(np.stack(value)) for key, value in rollout.items()
        })  # fmt: skip
    return finished


def update(agent: Agent, optimizer: torch.optim.Optimizer, data: dict[str, torch.Tensor]) -> None:
    """One update of PPO."""
    with torch.no_grad():
        values = agent.value(data["obs"]).squeeze(-1)
        # A truncated episode is worth what would have come after it, a terminated one nothing.
        ahead = agent.value(data["successors"]).squeeze(-1) * ~data["terminated"]
        deltas = data["rewards"].float() + GAMMA * ahead - values
        advantages = torch.zeros_like(deltas)
        last = torch.zeros_like(deltas[0])
        for t in reversed(range(ROLLOUT)):
            last = deltas[t] + GAMMA * LAMBDA * last * ~data["done"][t]
            advantages[t] = last
    valid = data["valid"]  # without the steps that were none
    flat = {key: data[key][valid] for key in ("obs", "actions", "logprobs")}
    targets, advantages = (advantages + values)[valid], advantages[valid]
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    for _ in range(EPOCHS):
        for some in torch.randperm(len(targets)).chunk(MINIBATCHES):
            distribution = agent.distribution(flat["obs"][some])
            ratio = (distribution.log_prob(flat["actions"][some]) - flat["logprobs"][some]).exp()
            gain = advantages[some]
            policy_loss = -torch.min(gain * ratio, gain * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
            value_loss = (agent.value(flat["obs"][some]).squeeze(-1) - targets[some]).square()
            entropy = distribution.entropy().mean()
            loss = policy_loss + 0.5 * value_loss.mean() - ENTROPY * entropy
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()


def main() -> None:
    """Learn CartPole from a DummyVecEnv."""
    parser = argparse.ArgumentParser(description="PPO on CartPole, from a DummyVecEnv.")
    parser.add_argument("mode", nargs="?", choices=["SameStep", "NextStep"], default="SameStep")
    parser.add_argument("--steps", type=int, default=80_000)
    args = parser.parse_args()
    vec_env = DummyVecEnv([lambda: gym.make("CartPole-v1")] * 8)
    envs = sb3compat.to_gymnasium(vec_env, autoreset_mode=args.mode)
    returns = train(envs, args.steps)
    envs.close()
    print(f"{args.mode}: mean return of the first 20 episodes {np.mean(returns[:20]):.0f}, "
          f"of the last 20 {np.mean(returns[-20:]):.0f}")  # fmt: skip


if __name__ == "__main__":
    main()
