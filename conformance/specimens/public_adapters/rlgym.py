"""RLGym's `SB3SingleInstanceEnv`: the cars of one match as rows.

Source: RLGym/rlgym-tools, v1.8.3, rlgym_tools/sb3_utils/sb3_single_instance_env.py, lines 11-74.
One info for all cars, and its last observation: lines 40-51. Seeds: lines 57-58. Attributes: lines
61-74. The match: rlgym 1.2.0, rlgym/gym.py, lines 82-150, which has no `seed` of its own; the one
of gym 0.21, which it inherits, does nothing.

`get_attr` answers None, which SB3's constructor has refused since SB3 2.0 (rlgym-tools asks for
1.x). Here it answers for `render_mode`, so that the adapter can be made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from conformance.specimens.public_adapters.walks import AnswersNone, Walks


class Match:
    """A match of several cars, which ends for all at once; it takes no seed."""

    def __init__(self, agents: int) -> None:
        self.agents = agents
        self.observation_space = Walks.observation_space()
        self.action_space = Walks.action_space()
        self._walks = Walks(agents)
        self._walks.share(None)

    def seed(self, seed: int | None = None) -> None:
        """Do nothing, as in gym 0.21."""

    def reset(self) -> Any:
        self._walks.reset()
        return list(self._walks.obs)

    def step(self, actions: Any) -> Any:
        walks = self._walks
        walks.move(actions)
        done = bool((walks.terminated | walks.truncated).any())
        return list(walks.obs), walks.rewards.tolist(), done, {"result": int(walks.place.sum())}

    def close(self) -> None:
        """Keep nothing open."""


class SB3SingleInstanceEnv(AnswersNone, VecEnv):
    """The adapter."""

    def __init__(self, env: Match) -> None:
        super().__init__(env.agents, env.observation_space, env.action_space)
        self.env = env
        self.results: Any = None

    def reset(self) -> Any:
        return np.asarray(self.env.reset())

    def step_async(self, actions: Any) -> None:
        self.results = self.env.step(actions)

    def step_wait(self) -> Any:
        obs, rewards, done, info = self.results
        infos = [info] * len(rewards)
        if done:
            for shared, last in zip(infos, obs, strict=True):
                shared["terminal_observation"] = last
            obs = self.env.reset()
        return np.asarray(obs), np.array(rewards), np.full(len(rewards), done), infos

    def close(self) -> None:
        self.env.close()

    def seed(self, seed: int | None = None) -> Any:
        self.env.seed(seed)
        return [None] * self.num_envs
