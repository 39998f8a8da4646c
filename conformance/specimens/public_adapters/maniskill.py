"""ManiSkill's `ManiSkillSB3VectorEnv`.

Source: haosulab/ManiSkill, mani_skill/vector/wrappers/sb3.py, 3.0.1, lines 30-138. Infos: lines
83-93. The last observation: lines 95-101, and select_index_from_dict, lines 17-26. The partial
reset: lines 104-109. Seeds: lines 55-63; the rows' seeds: mani_skill/envs/sapien_env.py, lines
980-1016. Attributes: lines 116-133, which ask for methods that its environments do not have.

Tensors on a GPU are copied by `.cpu()`; here they are copied, too.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3.common.vec_env import VecEnv

from conformance.specimens.public_adapters.walks import Walks


def tensor(array: Any) -> torch.Tensor:
    """A tensor of its own memory, as on a GPU."""
    return torch.as_tensor(np.array(array))


def on_cpu(value: torch.Tensor) -> Any:
    """What `.cpu().numpy()` gives of a tensor on a GPU: a copy."""
    return value.clone().numpy()


class Scenes(gym.Env[Any, Any]):
    """An environment of ManiSkill: batched tensors, a reset of the rows in `options["env_idx"]`."""

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self.single_observation_space = Walks.observation_space()
        self.single_action_space = Walks.action_space()
        self._walks = Walks(num_envs, 2022)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        if seed is not None:
            others = np.random.RandomState(seed).randint(2**31, size=self.num_envs - 1)
            self._walks.seed([seed, *map(int, others)])
        self._walks.reset((options or {}).get("env_idx"))
        return tensor(self._walks.obs), {"reconfigure": False}

    def step(self, action: Any) -> Any:
        self._walks.move(action)
        rewards = tensor(self._walks.rewards.astype(np.float32))
        terminated, truncated = tensor(self._walks.terminated), tensor(self._walks.truncated)
        return tensor(self._walks.obs), rewards, terminated, truncated, {"success": terminated}

    def close(self) -> None:
        """Keep nothing open."""


class ManiSkillSB3VectorEnv(VecEnv):
    """ManiSkill's adapter, which also counts returns and lengths."""

    def __init__(self, env: Any) -> None:
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self._env = env
        self._last_seed: int | None = None
        self._start()

    def _start(self) -> None:
        self.returns, self.lengths = torch.zeros(self.num_envs), torch.zeros(self.num_envs)

    def seed(self, seed: int | None = None) -> Any:
        self._last_seed = seed

    def reset(self) -> Any:
        self._start()
        obs, _ = self._env.reset(seed=self._last_seed)
        self._last_seed = None
        return on_cpu(obs)

    def step_async(self, actions: Any) -> None:
        self.actions = actions

    def step_wait(self) -> Any:
        obs, rewards, terminated, truncated, info = self._env.step(self.actions)
        self.returns += rewards
        self.lengths += 1
        batch, dones = on_cpu(obs), on_cpu(terminated | truncated)
        infos: list[dict[str, Any]] = [
            {
                "TimeLimit.truncated": truncated[i] and not terminated[i],
                "episode": {"r": on_cpu(self.returns), "l": on_cpu(self.lengths)},
            }
            for i in range(self.num_envs)
        ]
        ended = np.flatnonzero(dones)
        for i in ended:
            infos[i]["is_success"] = on_cpu(info["success"][i])
            infos[i]["terminal_observation"] = batch[i]
        if ended.size:
            first, _ = self._env.reset(options={"env_idx": ended})
            batch[ended] = on_cpu(first[ended])
            self.returns[ended] = 0
            self.lengths[ended] = 0
        return batch, on_cpu(rewards), dones, infos

    def close(self) -> None:
        self._env.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        return self._env.get_attr(attr_name, indices)

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        self._env.set_attr(attr_name, value, indices)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        return self._env.env_method(method_name, *args, indices=indices, **kwargs)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs
