"""gym3's `ToBaselinesVecEnv`, below SB3's `VecMonitor`, as SB3's guide uses Procgen.

Source: openai/gym3, v0.3.3, gym3/interop.py, lines 301-343. No reset: lines 313-317. The step:
lines 319-324; `first` says that the observation begins an episode, the one before is not kept.
There are neither seeds nor attributes, and the class is no subclass of `VecEnv`. SB3's guide:
docs/guide/examples.rst, "SB3 with ProcgenEnv".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecMonitor

from conformance.specimens.public_adapters.walks import Walks


class Gym3Env:
    """An environment of gym3: it cannot be reset, and begins episodes by itself."""

    def __init__(self, num: int) -> None:
        self.num = num
        self.ob_space = spaces.Dict({"rgb": spaces.Box(0, 255, (8, 8, 3), np.uint8)})
        self.ac_space = spaces.Discrete(3)
        self._walks = Walks(num)
        self._walks.share(0)
        self._rewards, self._first = np.zeros(num, np.float32), np.ones(num, bool)

    def observe(self) -> Any:
        return self._rewards, {"rgb": self._frames()}, self._first

    def act(self, actions: Any) -> None:
        self._walks.move(np.asarray(actions) - 1)
        self._rewards = self._walks.rewards.astype(np.float32)
        self._first = self._walks.terminated | self._walks.truncated
        self._walks.reset(np.flatnonzero(self._first))

    def get_info(self) -> list[dict[str, Any]]:
        return [{"level_seed": int(1000 * start)} for start in self._walks.start]

    def _frames(self) -> Any:
        shown = np.clip(128 + 40 * self._walks.obs[:, :2], 0, 255).astype(np.uint8)
        frames = np.zeros((self.num, 8, 8, 3), np.uint8)
        frames[..., :2] = shown[:, None, None]
        frames[..., 2] = self._walks.age[:, None, None]
        return frames


class ToBaselinesVecEnv:
    """gym3's adapter."""

    def __init__(self, env: Gym3Env) -> None:
        self.env = env
        self.observation_space = env.ob_space
        self.action_space = env.ac_space

    @property
    def num_envs(self) -> int:
        return self.env.num

    def reset(self) -> Any:
        _, obs, first = self.env.observe()
        if not first.all():
            print("Warning: manual reset ignored")
        return obs

    def step_async(self, actions: Any) -> None:
        self.env.act(actions)

    def step_wait(self) -> Any:
        rewards, obs, first = self.env.observe()
        return obs, rewards, first, self.env.get_info()

    def step(self, actions: Any) -> Any:
        self.step_async(actions)
        return self.step_wait()

    def render(self, mode: str = "human") -> Any:
        info = self.env.get_info()[0]
        return info["rgb"] if mode == "rgb_array" and "rgb" in info else None

    def close(self) -> None:
        """Keep nothing open."""


def monitored(num: int) -> VecMonitor:
    """What SB3's guide trains on."""
    return VecMonitor(ToBaselinesVecEnv(Gym3Env(num)))  # type: ignore[arg-type]
