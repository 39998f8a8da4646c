"""Isaac Lab's `Sb3VecEnvWrapper`.

Source: isaac-sim/IsaacLab, source/isaaclab_rl/isaaclab_rl/sb3.py, v2.3.2, lines 93-433; the default
`fast_variant=True`. The last observation: lines 386-390, of the observations that the environment
returns after it has reset the rows
(source/isaaclab/isaaclab/envs/manager_based_rl_env.py, lines 216-238).
Seeds: lines 208-212, by the environment's `seed`, which sets the generators of the process
(manager_based_env.py, lines 505-522). Attributes: lines 260-293.

Here the generator belongs to the environment, so that two environments in one process do not
disturb each other. Tensors are copied, as from a GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from stable_baselines3.common.vec_env import VecEnv

from conformance.specimens.public_adapters.maniskill import on_cpu, tensor
from conformance.specimens.public_adapters.walks import Walks


class Lab:
    """An environment of Isaac Lab: it resets the rows that have ended within the step."""

    render_mode = None

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self.single_observation_space = {"policy": Walks.observation_space()}
        self.single_action_space = Walks.action_space()
        self._walks = Walks(num_envs)
        self._walks.share(42)

    def seed(self, seed: int | None = -1) -> int | None:
        self._walks.share(seed)
        return seed

    def reset(self) -> Any:
        self._walks.reset()
        return {"policy": tensor(self._walks.obs)}, {}

    def step(self, actions: Any) -> Any:
        self._walks.move(actions)
        rewards = tensor(self._walks.rewards.astype(np.float32))
        terminated, truncated = tensor(self._walks.terminated), tensor(self._walks.truncated)
        self._walks.reset(np.flatnonzero(terminated | truncated))
        return {"policy": tensor(self._walks.obs)}, rewards, terminated, truncated, {}

    def close(self) -> None:
        """Keep nothing open."""


class Sb3VecEnvWrapper(VecEnv):
    """Isaac Lab's adapter, which also counts returns and lengths."""

    def __init__(self, env: Lab) -> None:
        self.env = env
        self.returns, self.lengths = np.zeros(env.num_envs), np.zeros(env.num_envs)
        space = env.single_observation_space["policy"]
        super().__init__(env.num_envs, space, env.single_action_space)

    def seed(self, seed: int | None = None) -> Any:
        return [self.env.seed(seed)] * self.num_envs

    def reset(self) -> Any:
        obs, _ = self.env.reset()
        self.returns, self.lengths = np.zeros(self.num_envs), np.zeros(self.num_envs)
        return on_cpu(obs["policy"])

    def step_async(self, actions: Any) -> None:
        self.actions = torch.from_numpy(np.asarray(actions)).to(torch.float32)

    def step_wait(self) -> Any:
        given, rewards, terminated, truncated, _ = self.env.step(self.actions)
        obs, returned = on_cpu(given["policy"]), on_cpu(rewards)
        ended, cut = on_cpu(terminated), on_cpu(truncated)
        dones = ended | cut
        self.returns += returned
        self.lengths += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(dones):
            infos[i]["episode"] = {"r": self.returns[i], "l": self.lengths[i]}
            infos[i]["TimeLimit.truncated"] = cut[i] and not ended[i]
            infos[i]["terminal_observation"] = obs[i]
        self.returns[dones] = 0
        self.lengths[dones] = 0
        return obs, returned, dones, infos

    def close(self) -> None:
        self.env.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        n = self.num_envs if indices is None else len(indices)
        return [getattr(self.env, attr_name)] * n

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError("attributes cannot be set")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        return getattr(self.env, method_name)(*args, indices=indices, **kwargs)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False]

    def get_images(self) -> Any:
        raise NotImplementedError("there are no images")
