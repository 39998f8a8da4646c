"""mbt-gym's `StableBaselinesTradingEnvironment`: trajectories of one market as rows.

Source: JJJerome/mbt_gym, 1e1aa38, mbt_gym/gym/StableBaselinesTradingEnvironment.py, lines 11-66.
The end of an episode: lines 28-37. Seeds: lines 54-55. Attributes: lines 42-58. The market:
mbt_gym/gym/TradingEnvironment.py; all trajectories end at its closing time (lines 218-220); its
infos are the same dicts in every step (lines 222-227 and 320-321); `seed` sets its generators at
once (lines 345-348).

`get_attr` answers None, which SB3's constructor has refused since SB3 2.0 (mbt-gym asks for
1.6.2). Here it answers for `render_mode`, so that the adapter can be made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from conformance.specimens.public_adapters.walks import AnswersNone, Walks


class Days(Walks):
    """Rows whose episodes have few steps."""

    LIMIT = 4


class Market:
    """A market with a closing time, and one generator for all trajectories."""

    def __init__(self, num_trajectories: int) -> None:
        self.num_trajectories = num_trajectories
        self.observation_space = Walks.observation_space()
        self.action_space = Walks.action_space()
        self._walks = Days(num_trajectories)
        self._walks.share(0)
        self._empty_infos: list[dict[str, Any]] = [{} for _ in range(num_trajectories)]

    def seed(self, seed: Any = None) -> None:
        self._walks.share(seed + 1)

    def reset(self) -> Any:
        self._walks.reset()
        return self._obs()

    def step(self, actions: Any) -> Any:
        self._walks.move(actions)
        done = np.full(self.num_trajectories, self._walks.truncated[0])
        return self._obs(), self._walks.rewards, done, self._empty_infos

    def _obs(self) -> Any:
        return np.clip(self._walks.obs, -20, 20).astype(np.float64)


class StableBaselinesTradingEnvironment(AnswersNone, VecEnv):
    """The adapter, with its default `store_terminal_observation_info=True`."""

    def __init__(self, trading_env: Market) -> None:
        self.env = trading_env
        self.actions = trading_env.action_space.sample()
        spaces = (trading_env.observation_space, trading_env.action_space)
        super().__init__(trading_env.num_trajectories, *spaces)

    def reset(self) -> Any:
        return self.env.reset()

    def step_async(self, actions: Any) -> None:
        self.actions = actions

    def step_wait(self) -> Any:
        obs, rewards, dones, infos = self.env.step(self.actions)
        if dones.all():
            infos = infos.copy()
            for i, info in enumerate(infos):
                info["terminal_observation"] = obs[i, :]
            obs = self.env.reset()
        return obs, rewards, dones, infos

    def close(self) -> None:
        """Keep nothing open."""

    def seed(self, seed: int | None = None) -> Any:
        return self.env.seed(seed)
