"""EnvPool's example for SB3: `VecAdapter`.

Source: sail-sg/envpool, examples/sb3_examples/ppo.py, v1.2.4, lines 48-156. The last observation
of an episode: line 100. The reset of a row that has ended: lines 101-102. Seeds: lines 89-91.
Attributes: lines 110-136. The pool's own behaviour: envpool/python/gymnasium_envpool.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from conformance.specimens.public_adapters.walks import Walks


class Pool:
    """A pool of EnvPool: NextStep, with resets by the numbers of rows; seeded when it is made."""

    render_mode = None

    def __init__(self, num_envs: int, seed: int = 42) -> None:
        self.num_envs = num_envs
        self.observation_space = Walks.observation_space()
        self.action_space = Walks.action_space()
        self._walks = Walks(num_envs, seed)
        self._ended = np.zeros(num_envs, bool)

    def reset(self, env_id: Any = None) -> tuple[Any, dict[str, Any]]:
        """Reset these rows, or all; returns those alone."""
        rows = np.arange(self.num_envs) if env_id is None else np.asarray(env_id)
        self._walks.reset(rows)
        self._ended[rows] = False
        return self._walks.obs[rows], self._info(rows)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        again = np.flatnonzero(self._ended)
        self._walks.move(actions)
        self._walks.reset(again)
        ran = ~self._ended
        rewards = (self._walks.rewards * ran).astype(np.float32)
        terminated, truncated = self._walks.terminated & ran, self._walks.truncated & ran
        self._ended = terminated | truncated
        return self._walks.obs, rewards, terminated, truncated, self._info(slice(None))

    def _info(self, rows: Any) -> dict[str, Any]:
        ids = np.arange(self.num_envs, dtype=np.int32)[rows]
        age = self._walks.age[rows].astype(np.int32)
        return {"env_id": ids, "elapsed_step": age, "players": {"env_id": ids}}

    def close(self) -> None:
        """Keep nothing open."""


class VecAdapter(VecEnv):
    """The example's adapter."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        super().__init__(pool.num_envs, pool.observation_space, pool.action_space)

    def reset(self) -> Any:
        obs, info = self.pool.reset()
        self.reset_infos = self._by_row(info, self.num_envs)
        self._reset_seeds()
        self._reset_options()
        return obs

    def seed(self, seed: int | None = None) -> list[None]:
        return [None] * self.num_envs

    def step_async(self, actions: Any) -> None:
        self.actions = actions

    def step_wait(self) -> Any:
        obs, rewards, terminated, truncated, info = self.pool.step(self.actions)
        dones = terminated | truncated
        infos = self._by_row(info, self.num_envs)
        for i in np.flatnonzero(dones):
            infos[i]["terminal_observation"] = obs[i]
            first, reset_info = self.pool.reset(np.array([i]))
            obs[i] = first[0]
            self.reset_infos[i] = self._by_row(reset_info, 1)[0]
        return obs, rewards, dones, infos

    @staticmethod
    def _by_row(info: dict[str, Any], n: int) -> list[dict[str, Any]]:
        arrays = {key: value for key, value in info.items() if isinstance(value, np.ndarray)}
        return [{key: value[i] for key, value in arrays.items()} for i in range(n)]

    def close(self) -> None:
        self.pool.close()

    def get_images(self) -> Any:
        return [None] * self.num_envs

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        value = getattr(self.pool, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        for _ in self._get_indices(indices):
            setattr(self.pool, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        method = getattr(self.pool, method_name)
        return [method(*args, **kwargs) for _ in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False for _ in self._get_indices(indices)]
