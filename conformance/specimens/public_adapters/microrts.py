"""MicroRTS-Py's `MicroRTSGridModeVecEnv`, below SB3's `VecMonitor`.

Source: Farama-Foundation/MicroRTS-Py, b6bf191, gym_microrts/envs/vec_env.py, lines 33-291, as
experiments/ppo_gridnet.py, lines 331-346, makes it, with `cycle_maps` and games against oneself.
The step: lines 222-247. A game that has ended is reset, and its observations are replaced: lines
237-246; where there are games against bots as well, into the wrong rows: line 240. Actions wait
for a mask: lines 206-211 and 281-291. There are neither seeds nor attributes.

The training script asks for the mask before each step; here `step_async` does, as without one
every step fails, and nothing else could be checked. The length that a game may have counts as an
end that is nothing but an end, as in lines 222-224.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecMonitor

from conformance.specimens.public_adapters.walks import Walks

PLANES = (5, 13)
WEIGHTS = np.array([1.0, 0.5])


class Games:
    """Games with two players; the rows 2 i and 2 i + 1 are those of game i."""

    def __init__(self, players: int) -> None:
        self._walks = Walks(players)
        self._walks.share(0)

    def reset(self) -> Any:
        self._walks.reset()
        return self.obs

    def reset_game(self, game: int) -> None:
        self._walks.reset([2 * game, 2 * game + 1])

    def step(self, actions: Any) -> Any:
        self._walks.move(np.asarray(actions).sum(axis=1) - 2)
        over = (self._walks.terminated | self._walks.truncated).reshape(-1, 2).any(axis=1)
        rewards = np.stack([self._walks.rewards, np.ones(self._walks.n)], axis=1)
        return rewards, np.repeat(over, 2)

    @property
    def obs(self) -> Any:
        """The place and the age, as numbers of planes."""
        places = np.clip(np.round(self._walks.place) + 2, 0, PLANES[0] - 1)
        return np.stack([places, np.clip(self._walks.age, 0, PLANES[1] - 1)], axis=1).astype(int)


class MicroRTSGridModeVecEnv:
    """The environment: no subclass of `VecEnv`, with the methods of one that are used."""

    metadata = {"render.modes": ["human", "rgb_array"], "video.frames_per_second": 150}

    def __init__(self, num_selfplay_envs: int, num_bot_envs: int = 0) -> None:
        self.num_bot_envs = num_bot_envs
        self.num_envs = num_selfplay_envs + num_bot_envs
        self.observation_space = spaces.Box(0.0, 1.0, (1, 1, sum(PLANES)), np.int32)
        self.action_space = spaces.MultiDiscrete([3, 3])
        self._games = Games(self.num_envs)

    def _encoded(self, obs: Any) -> Any:
        planes = np.zeros((1, 1, sum(PLANES)), np.int32)
        planes[0, 0, [obs[0], PLANES[0] + obs[1]]] = 1
        return planes

    def reset(self) -> Any:
        return np.array([self._encoded(obs) for obs in self._games.reset()])

    def get_action_mask(self) -> Any:
        self.source_unit_mask = np.ones((self.num_envs, 1), np.int32)
        return np.ones((self.num_envs, 1, 6), np.int32)

    def step_async(self, actions: Any) -> None:
        self.get_action_mask()
        self._actions = np.asarray(actions).reshape(self.num_envs, -1)

    def step_wait(self) -> Any:
        rewards, done = self._games.step(self._actions)
        obs = [self._encoded(row) for row in self._games.obs]
        infos = [{"raw_rewards": item} for item in rewards]
        for i in np.flatnonzero(done).tolist():
            if i % 2 == 0:
                first = i - self.num_bot_envs
                self._games.reset_game(first // 2)
                fresh = self._games.obs
                obs[first] = self._encoded(fresh[i])
                obs[first + 1] = self._encoded(fresh[i + 1])
        return np.array(obs), rewards @ WEIGHTS, done, infos

    def step(self, actions: Any) -> Any:
        self.step_async(actions)
        return self.step_wait()

    def getattr_depth_check(self, name: str, already_found: bool) -> Any:
        return type(self).__name__ if hasattr(self, name) and already_found else None

    def render(self, mode: str = "human") -> Any:
        return self._games._walks.frame(0) if mode == "rgb_array" else None

    def close(self) -> None:
        """Keep nothing open."""


def monitored(players: int) -> VecMonitor:
    """What the training script steps."""
    return VecMonitor(MicroRTSGridModeVecEnv(players))  # type: ignore[arg-type]
