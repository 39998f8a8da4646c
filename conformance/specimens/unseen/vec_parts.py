"""What most of the VecEnvs here share: a base without sub-environments, and one with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import concatenate, create_empty_array
from stable_baselines3.common.env_util import is_wrapped
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

Wrapper = gym.Wrapper[Any, Any, Any, Any]
Step = tuple[Any, Any, Any, list[dict[str, Any]]]


class NativeVecEnv(VecEnv):
    """A simulator of all rows at once, with a generator per row.

    It has no sub-environments: an attribute of its own answers for every row, and what would need
    one is refused.
    """

    render_mode: str | None = None

    def __init__(
        self,
        num_envs: int,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
    ) -> None:
        super().__init__(num_envs, observation_space, action_space)
        self.dice = [np.random.default_rng() for _ in range(num_envs)]
        self.actions: Any = None

    def take_seeds(self) -> None:
        """Seed the generators of the rows for which there is a seed, which is used once."""
        for i, seed in enumerate(self._seeds):
            if seed is not None:
                self.dice[i] = np.random.default_rng(seed)
        self._reset_seeds()
        self._reset_options()

    def draw(self, low: int, high: int, size: int | None = None) -> Any:
        """Draw integers for every row, each from its own generator."""
        return np.stack([dice.integers(low, high, size) for dice in self.dice])

    def infos(self, truncations: Any = None) -> list[dict[str, Any]]:
        """Return one info per row, with nothing but the flag."""
        if truncations is None:
            truncations = np.zeros(self.num_envs, bool)
        return [{"TimeLimit.truncated": bool(flag)} for flag in truncations]

    def step_async(self, actions: Any) -> None:
        self.actions = np.array(actions)

    def close(self) -> None:
        pass

    def rows(self, indices: VecEnvIndices) -> list[int]:
        """Return the rows meant, as numbers from 0."""
        everyone = range(self.num_envs)
        return [everyone[i] for i in self._get_indices(indices)]

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        return [getattr(self, attr_name) for _ in self.rows(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        raise NotImplementedError("There are no sub-environments to set an attribute of")

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **kwargs: Any
    ) -> list[Any]:
        raise NotImplementedError("There are no sub-environments to call a method of")

    def env_is_wrapped(
        self, wrapper_class: type[Wrapper], indices: VecEnvIndices = None
    ) -> list[bool]:
        return [False for _ in self.rows(indices)]


class RowsVecEnv(VecEnv):
    """What one writes instead of DummyVecEnv: a loop over single environments."""

    def __init__(self, makers: Sequence[Callable[[], gym.Env[Any, Any]]]) -> None:
        self.envs = [make() for make in makers]
        first = self.envs[0]
        super().__init__(len(self.envs), first.observation_space, first.action_space)
        self.actions: Any = None

    def reset(self) -> Any:
        first = []
        for i, env in enumerate(self.envs):
            options = self._options[i] or None
            obs, self.reset_infos[i] = env.reset(seed=self._seeds[i], options=options)
            first.append(obs)
        self._reset_seeds()
        self._reset_options()
        return self.batch(first)

    def batch(self, observations: Sequence[Any]) -> Any:
        """Return the observations of the rows as one."""
        space = self.observation_space
        empty: Any = create_empty_array(space, len(observations))
        return concatenate(space, observations, empty)

    def step_async(self, actions: Any) -> None:
        self.actions = np.array(actions)

    def step_wait(self) -> Step:
        steps = [self.step_row(i, action) for i, action in enumerate(self.actions)]
        observations, rewards, dones, infos = zip(*steps, strict=True)
        flags = np.array(dones, np.bool_)
        return self.batch(observations), np.array(rewards, np.float32), flags, list(infos)

    def step_row(self, i: int, action: Any) -> tuple[Any, float, bool, dict[str, Any]]:
        """Step one row, and reset it where its episode is over."""
        obs, reward, terminated, truncated, info = self.envs[i].step(action)
        info = {**info, "TimeLimit.truncated": truncated and not terminated}
        if terminated or truncated:
            info["terminal_observation"] = obs
            obs, self.reset_infos[i] = self.envs[i].reset()
        return obs, float(reward), terminated or truncated, info

    def close(self) -> None:
        for env in self.envs:
            env.close()

    def picked(self, indices: VecEnvIndices) -> list[gym.Env[Any, Any]]:
        """Return the single environments meant, in the order asked for."""
        return [self.envs[i] for i in self._get_indices(indices)]

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        return [env.get_wrapper_attr(attr_name) for env in self.picked(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        for env in self.picked(indices):
            setattr(env, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **kwargs: Any
    ) -> list[Any]:
        picked = self.picked(indices)
        return [env.get_wrapper_attr(method_name)(*method_args, **kwargs) for env in picked]

    def env_is_wrapped(
        self, wrapper_class: type[Wrapper], indices: VecEnvIndices = None
    ) -> list[bool]:
        return [is_wrapped(env, wrapper_class) for env in self.picked(indices)]
