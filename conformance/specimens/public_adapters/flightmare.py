"""Flightmare's `FlightEnvVec`.

Source: uzh-rpg/flightmare, branch `competition` (360f565),
flightpy/flightrl/rpg_baselines/torch/envs/vec_env_wrapper.py, lines 19-353. SB3's constructor is
not called: lines 73-74. One method `step` alone: lines 98-145, and lines 324-328. Seeds: lines
76-77. One row: lines 163-164. The end of an episode:
flightlib/src/envs/vec_env_base.cpp, lines 184-206, where a row begins anew within the step, and
its reward is the terminal one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from conformance.specimens.public_adapters.walks import Walks


class Quadrotors:
    """The simulator in C++, which writes into the arrays that it is given."""

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self._walks = Walks(num_envs)

    def set_seed(self, seed: int) -> None:
        self._walks.seed(range(seed, seed + self.num_envs))

    def reset(self, obs: Any) -> None:
        self._walks.reset()
        obs[:] = self._walks.obs

    def step(self, actions: Any, obs: Any, rewards: Any, done: Any, extra: Any) -> None:
        self._walks.move(actions)
        done[:] = self._walks.terminated | self._walks.truncated
        extra[:, 0] = self._walks.age
        rewards[:] = np.where(done, -1.0, self._walks.rewards)
        self._walks.reset(np.flatnonzero(done))
        obs[:] = self._walks.obs


class FlightEnvVec(VecEnv):
    """The adapter, without cameras, and without running statistics, which are idle at first."""

    def __init__(self, impl: Quadrotors) -> None:
        self.wrapper = impl
        box = Walks.observation_space()
        self._observation_space = spaces.Box(-np.inf, np.inf, box.shape, np.float64)
        self._action_space = spaces.Box(-1.0, 1.0, (1,), np.float64)
        n = impl.num_envs
        self._obs, self._extra = np.zeros((n, 3)), np.zeros((n, 1))
        self._rewards, self._done = np.zeros(n), np.zeros(n, bool)
        self.rewards: list[list[float]] = [[] for _ in range(n)]

    @property
    def num_envs(self) -> Any:  # type: ignore[override]
        return self.wrapper.num_envs

    @property
    def observation_space(self) -> Any:  # type: ignore[override]
        return self._observation_space

    @property
    def action_space(self) -> Any:  # type: ignore[override]
        return self._action_space

    def seed(self, seed: int = 0) -> Any:  # type: ignore[override]
        self.wrapper.set_seed(seed)

    def step(self, actions: Any) -> Any:
        self.wrapper.step(actions, self._obs, self._rewards, self._done, self._extra)
        infos: list[dict[str, Any]] = [{"extra_info": {"age": row[0]}} for row in self._extra]
        for i, reward in enumerate(self._rewards):
            self.rewards[i].append(reward)
            if self._done[i]:
                infos[i]["episode"] = {"r": sum(self.rewards[i]), "l": len(self.rewards[i])}
                self.rewards[i].clear()
        return self._normalized(), self._rewards.copy(), self._done.copy(), infos.copy()

    def reset(self, random: bool = True) -> Any:
        self._rewards[:] = 0
        self.wrapper.reset(self._obs)
        obs = self._normalized()
        return obs[0] if self.num_envs == 1 else obs

    def _normalized(self) -> Any:
        return self._obs / np.sqrt(1 + 1e-8)

    def render(self, frame_id: int, mode: str = "human") -> Any:  # type: ignore[override]
        return frame_id

    def close(self) -> None:
        """Keep nothing open."""

    def step_async(self) -> None:  # type: ignore[override]
        raise RuntimeError("This method is not implemented")

    def step_wait(self) -> Any:
        raise RuntimeError("This method is not implemented")

    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        raise RuntimeError("This method is not implemented")

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise RuntimeError("This method is not implemented")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        raise RuntimeError("This method is not implemented")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> Any:
        rows = self.envs  # type: ignore[attr-defined]
        return [isinstance(rows[i], wrapper_class) for i in self._get_indices(indices)]
