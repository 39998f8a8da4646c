"""PPO of skrl, which knows Gymnasium's vector environments, on SB3's VecNormalize.

`pip install skrl`, then `python skrl_vec_normalize.py --steps 2000`.
"""

from __future__ import annotations

import argparse
import tempfile
from typing import Any

import gymnasium as gym
import torch
from skrl.agents.torch.ppo import PPO, PPO_DEFAULT_CONFIG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
from skrl.trainers.torch import SequentialTrainer
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from torch import nn

import sb3compat


class Policy(GaussianMixin, Model):  # type: ignore[misc]
    """A normal distribution of actions."""

    def __init__(self, env: Any) -> None:
        Model.__init__(self, env.observation_space, env.action_space, env.device)
        GaussianMixin.__init__(self, clip_actions=True)
        self.net = nn.Sequential(
            nn.Linear(self.num_observations, 32), nn.Tanh(), nn.Linear(32, self.num_actions)
        )
        self.log_std = nn.Parameter(torch.zeros(self.num_actions))

    def compute(self, inputs: dict[str, torch.Tensor], role: str) -> Any:
        """Means and standard deviations for a batch of states."""
        return self.net(inputs["states"]), self.log_std, {}


class Value(DeterministicMixin, Model):  # type: ignore[misc]
    """The value of a state."""

    def __init__(self, env: Any) -> None:
        Model.__init__(self, env.observation_space, env.action_space, env.device)
        DeterministicMixin.__init__(self)
        self.net = nn.Sequential(nn.Linear(self.num_observations, 32), nn.Tanh(), nn.Linear(32, 1))

    def compute(self, inputs: dict[str, torch.Tensor], role: str) -> tuple[torch.Tensor, Any]:
        """The output for a batch of states."""
        return self.net(inputs["states"]), {}


def main() -> None:
    """Train for some steps, and tell what VecNormalize has seen of them."""
    parser = argparse.ArgumentParser(description="PPO of skrl on Pendulum, in a VecNormalize.")
    parser.add_argument("--steps", type=int, default=2_000)
    steps = parser.parse_args().steps
    torch.manual_seed(0)
    vec_env = VecNormalize(DummyVecEnv([lambda: gym.make("Pendulum-v1")] * 4))
    vec_env.seed(0)  # for the first reset, which is skrl's
    envs = sb3compat.to_gymnasium(vec_env)
    env = wrap_env(envs, wrapper="gymnasium")
    models: dict[str, Any] = {"policy": Policy(env), "value": Value(env)}
    before = [parameter.clone() for parameter in models["policy"].parameters()]
    config = {
        **PPO_DEFAULT_CONFIG,
        "rollouts": 32,
        "mini_batches": 4,
        "experiment": {"directory": tempfile.gettempdir(), "write_interval": 0,
                       "checkpoint_interval": 0},
    }  # fmt: skip
    agent = PPO(
        models=models,
        memory=RandomMemory(32, env.num_envs, env.device),
        cfg=config,
        observation_space=env.observation_space,
        action_space=env.action_space,
        device=env.device,
    )
    trainer = SequentialTrainer(
        env=env,
        agents=agent,
        cfg={"timesteps": steps, "headless": True, "close_environment_at_exit": False},
    )
    trainer.train()
    changed = any(
        not torch.equal(a, b) for a, b in zip(before, models["policy"].parameters(), strict=True)
    )
    statistics: Any = vec_env.obs_rms
    envs.close()
    print(f"trained for {steps} steps of {envs.num_envs} rows")
    print(f"{statistics.count:.0f} observations normalised")
    print("weights changed" if changed else "weights as they were")


if __name__ == "__main__":
    main()
