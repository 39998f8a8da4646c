"""skrl 2 trains PPO on a vector environment: the same weights."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.real.environments import makers, same_results, torch, vector_envs

pytest.importorskip("skrl", reason="needs skrl 2")
if version("skrl").startswith("1."):
    pytest.skip("needs skrl 2", allow_module_level=True)

from skrl.agents.torch.ppo import PPO
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
from skrl.trainers.torch import SequentialTrainer

nn = torch.nn
STEPS = 128


class Policy(GaussianMixin, Model):  # type: ignore[misc]
    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        GaussianMixin.__init__(self, clip_actions=True)
        self.net = nn.Sequential(
            nn.Linear(self.num_observations, 32), nn.Tanh(), nn.Linear(32, self.num_actions)
        )
        self.log_std = nn.Parameter(torch.zeros(self.num_actions))

    def compute(self, inputs: dict[str, Any], role: str = "") -> Any:
        return self.net(inputs["observations"]), {"log_std": self.log_std}


class Value(DeterministicMixin, Model):  # type: ignore[misc]
    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.net = nn.Sequential(nn.Linear(self.num_observations, 32), nn.Tanh(), nn.Linear(32, 1))

    def compute(self, inputs: dict[str, Any], role: str = "") -> Any:
        return self.net(inputs["observations"]), {}


@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
def test_ppo_learns_the_same(mode: str, tmp_path: Path) -> None:
    def train(envs: Any) -> Any:
        envs.reset(seed=3)
        env = wrap_env(envs)
        spaces = {
            "observation_space": env.observation_space,
            "action_space": env.action_space,
            "device": env.device,
        }
        models = {"policy": Policy(**spaces), "value": Value(**spaces)}
        quiet = {"directory": str(tmp_path), "write_interval": 0, "checkpoint_interval": 0}
        agent = PPO(
            models=models,
            memory=RandomMemory(memory_size=16, num_envs=env.num_envs, device=env.device),
            cfg={"rollouts": 16, "time_limit_bootstrap": True, "experiment": quiet},
            **spaces,
        )
        before = [parameter.clone() for parameter in models["policy"].parameters()]
        cfg = {"timesteps": STEPS, "headless": True, "disable_progressbar": True}
        cfg["close_environment_at_exit"] = False
        SequentialTrainer(env=env, agents=agent, cfg=cfg).train()
        after = list(models["policy"].parameters())
        assert not all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
        return models

    same_results(vector_envs(makers("Pendulum-v1", 3), mode), train)
