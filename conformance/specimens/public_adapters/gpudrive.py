"""GPUDrive's `SB3MultiAgentEnv`: the vehicles of many worlds as rows.

Source: Emerge-Lab/gpudrive, b2e575f, gpudrive/env/wrappers/sb3_wrapper.py, lines 24-286. Tensors,
and NaN for a vehicle that waits for its world to end: lines 214-257. `step` alone: lines 166 and
336-340. A flag in the place of `render`: line 54. SB3's constructor is not called: lines 31-136.
Seeds: lines 263-273, which `reset` (lines 142-161) does not look at. Attributes: lines 320-334.

A vehicle that has ended stays where it is; scenarios begin as they are recorded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from conformance.specimens.public_adapters.walks import Walks

STEERING = (-1.0, 0.0, 1.0)


class Drives:
    """Worlds with vehicles, flat; a world is reset by its number."""

    def __init__(self, worlds: int, vehicles: int) -> None:
        self.shape = (worlds, vehicles)
        self._walks = Walks(worlds * vehicles)
        self._over = np.zeros(self.shape, bool)

    def reset(self, worlds: Any = None) -> None:
        rows = np.arange(self._walks.n).reshape(self.shape)
        for row in rows.ravel() if worlds is None else rows[worlds].ravel():
            self._walks.place[row] = self._walks.start[row] = np.cos(row)
            self._walks.age[row] = 0
            self._over.ravel()[row] = False

    def step(self, actions: Any) -> tuple[Any, Any, Any]:
        walks, still = self._walks, self._over.ravel()
        walks.move(np.where(still, 0.0, np.take(STEERING, np.asarray(actions).ravel().astype(int))))
        self._over |= (walks.terminated | walks.truncated).reshape(self.shape)
        rewards = torch.as_tensor(walks.rewards.astype(np.float32)).reshape(self.shape)
        info = torch.as_tensor(np.repeat(walks.terminated[:, None], 5, axis=1).astype(np.int32))
        return rewards, torch.as_tensor(self._over.copy()), info

    def get_obs(self) -> Any:
        return torch.as_tensor(self._walks.obs)

    def close(self) -> None:
        """Keep nothing open."""


class SB3MultiAgentEnv(VecEnv):
    """The adapter, where all vehicles are controlled, without videos."""

    def __init__(self, env: Drives, render: bool = False) -> None:
        self.render = render  # type: ignore[assignment]
        self._env = env
        self.num_envs = int(np.prod(env.shape))
        self.action_space = spaces.Discrete(len(STEERING))
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
        self.render_mode = "rgb_array"
        self.buf_rews = torch.full(env.shape, float("nan"))
        self.buf_dones = torch.full(env.shape, float("nan"))

    def reset(self, world_idx: Any = None, seed: Any = None) -> Any:
        if world_idx is not None:
            return self._env.reset([world_idx])
        self._env.reset()
        self.dead = torch.zeros(self._env.shape, dtype=torch.bool)
        return self._env.get_obs()

    def step(self, actions: Any) -> Any:
        rewards, done, info = self._env.step(actions)
        worlds = torch.where(done.all(dim=1))[0]
        if len(worlds) > 0:
            self._env.reset(worlds.numpy())
        self.buf_rews[self.dead] = torch.nan
        self.buf_rews[~self.dead] = rewards[~self.dead]
        self.buf_dones[self.dead] = torch.nan
        self.buf_dones[~self.dead] = done[~self.dead].to(torch.float32)
        self.dead = torch.logical_or(self.dead, done)
        self.dead[worlds] = False
        rows = (self.num_envs,)
        flat = (self.buf_rews.reshape(rows).clone(), self.buf_dones.reshape(rows).clone())
        return self._env.get_obs().clone(), *flat, info.clone()

    def step_async(self, actions: Any) -> None:
        raise NotImplementedError

    def step_wait(self) -> Any:
        raise NotImplementedError

    def close(self) -> None:
        self._env.close()

    def seed(self, seed: int | None = None) -> Any:
        if seed is None:
            seed = int(np.random.randint(0, np.iinfo(np.uint32).max, dtype=np.uint32))
        self._seeds = [seed + i for i in range(self.num_envs)]
        return self._seeds

    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        raise NotImplementedError

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> Any:
        raise NotImplementedError

    def get_images(self, policy: Any = None) -> Any:
        return [self._env._walks.frame(0)]
