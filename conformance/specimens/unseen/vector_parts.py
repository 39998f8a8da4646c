"""What most of the VectorEnvs here share: a base without sub-environments, and one with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

Reset = tuple[Any, dict[str, Any]]
Step = tuple[Any, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]
Flags = npt.NDArray[np.bool_]

NEXT_STEP, SAME_STEP, DISABLED = (
    AutoresetMode.NEXT_STEP,
    AutoresetMode.SAME_STEP,
    AutoresetMode.DISABLED,
)


class NativeVectorEnv(VectorEnv[Any, Any, Any]):
    """A simulator of all rows at once."""

    def __init__(
        self,
        num_envs: int,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        mode: AutoresetMode,
    ) -> None:
        self.num_envs = num_envs
        self.single_observation_space = observation_space
        self.single_action_space = action_space
        self.observation_space = batch_space(observation_space, num_envs)
        self.action_space = batch_space(action_space, num_envs)
        self.metadata = {"autoreset_mode": mode, "render_modes": []}
        self.autoreset_mode = mode

    def nothing(self) -> tuple[npt.NDArray[np.float64], Flags, Flags]:
        """Return rewards of 0, and two arrays of flags that are false."""
        n = self.num_envs
        return np.zeros(n), np.zeros(n, bool), np.zeros(n, bool)

    def masked(self, options: dict[str, Any] | None) -> Flags:
        """Return the rows that a reset with these options is about."""
        if options is None or "reset_mask" not in options:
            return np.ones(self.num_envs, bool)
        mask = options["reset_mask"]
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise TypeError("`options['reset_mask']` must be an array of booleans")
        if mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError("`options['reset_mask']` must name one of the rows or more")
        return mask


class RowsVectorEnv(NativeVectorEnv):
    """What one writes instead of SyncVectorEnv: a loop over single environments."""

    def __init__(
        self, makers: Sequence[Callable[[], gym.Env[Any, Any]]], mode: AutoresetMode
    ) -> None:
        self.envs = [make() for make in makers]
        first = self.envs[0]
        super().__init__(len(self.envs), first.observation_space, first.action_space, mode)
        self.ended = np.zeros(self.num_envs, bool)
        self.last: list[Any] = [None for _ in self.envs]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        super().reset(seed=seed)
        infos: dict[str, Any] = {}
        mask = self.masked(options)
        rest = {key: value for key, value in (options or {}).items() if key != "reset_mask"}
        for i in np.flatnonzero(mask):
            own = None if seed is None else seed + int(i)
            self.last[i], info = self.envs[i].reset(seed=own, options=rest or None)
            self._add_info(infos, info, int(i))
        self.ended = self.ended & ~mask
        return self.batch(), infos

    def batch(self) -> Any:
        """Return the last observations of the rows as one."""
        space = self.single_observation_space
        empty: Any = create_empty_array(space, self.num_envs)
        return concatenate(space, self.last, empty)

    def step(self, actions: Any) -> Step:
        infos: dict[str, Any] = {}
        rewards, terminations, truncations = self.nothing()
        if self.autoreset_mode is DISABLED and self.ended.any():
            raise ValueError("Reset the rows that have ended first")
        for i, action in enumerate(iterate(self.action_space, actions)):
            if self.autoreset_mode is NEXT_STEP and self.ended[i]:
                self.last[i], info = self.envs[i].reset()
                self._add_info(infos, info, i)
            else:
                rewards[i], terminations[i], truncations[i] = self.step_row(i, action, infos)
        self.ended = terminations | truncations
        return self.batch(), rewards, terminations, truncations, infos

    def step_row(self, i: int, action: Any, infos: dict[str, Any]) -> tuple[float, bool, bool]:
        """Step one row, and note its observation and its info."""
        obs, reward, terminated, truncated, info = self.envs[i].step(action)
        if self.autoreset_mode is SAME_STEP and (terminated or truncated):
            self._add_info(infos, {"final_obs": obs, "final_info": info}, i)
            obs, info = self.envs[i].reset()
        self.last[i] = obs
        self._add_info(infos, info, i)
        return float(reward), terminated, truncated

    def close_extras(self, **kwargs: Any) -> None:
        for env in self.envs:
            env.close()
