"""Broken VecEnvs that loop over single environments, and two wrappers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import FrameStackObservation, TimeLimit
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

from conformance.specimens.registry import unseen
from conformance.specimens.unseen.rows import Camera, Corridor, Swing
from conformance.specimens.unseen.vec_parts import RowsVecEnv, Step

Row = tuple[Any, float, bool, dict[str, Any]]


def lake() -> gym.Env[Any, Any]:
    """Return a frozen lake of three by three, without slipping."""
    desc = ["SFF", "FHF", "FFG"]
    return gym.make("FrozenLake-v1", desc=desc, is_slippery=False, max_episode_steps=12)


LAKES = (lake,) * 4
OPEN = tuple(partial(Corridor, length) for length in (5, 7, 9))
LIMITS = tuple(partial(Corridor, 6, limit) for limit in (4, 6, 8))
SWINGS = (Swing,) * 3


def cart() -> gym.Env[Any, Any]:
    """Return the pole on a cart."""
    return gym.make("CartPole-v1", max_episode_steps=30)


def limited(make: Callable[[], gym.Env[Any, Any]]) -> gym.Env[Any, Any]:
    """Return an environment under a time limit."""
    return TimeLimit(make(), 9)


def stacked(make: Callable[[], gym.Env[Any, Any]]) -> gym.Env[Any, Any]:
    """Return an environment that shows its last three observations."""
    return FrameStackObservation(make(), 3, padding_type="zero")


@unseen(
    "vec_env",
    broken=True,
    singles=LAKES,
    untold="rewards that are always 0 are rewards; only the lake says that the goal is worth 1",
)
class LostLastReward(RowsVecEnv):
    """Four frozen lakes, in a loop with a buffer of rewards.

    Wrong: what begins an episode sets the row's reward to 0, and is called before the rewards are
    returned.
    """

    def __init__(self) -> None:
        super().__init__(LAKES)

    def step_row(self, i: int, action: Any) -> Row:
        obs, reward, done, info = super().step_row(i, action)
        return obs, 0.0 if done else reward, done, info


@unseen(
    "vec_env",
    broken=True,
    singles=tuple(partial(limited, make) for make in OPEN),
    untold="episodes may have any length; that one was cut short only shows beside the right limit",
)
class ClockKeepsRunning(RowsVecEnv):
    """Three corridors of different lengths under a time limit that this class imposes.

    Wrong: the clock of a row is set back where the limit ends the episode, but not where the
    corridor itself does, so that the next episode is truncated early.
    """

    def __init__(self) -> None:
        super().__init__(OPEN)
        self.clocks = [0 for _ in OPEN]

    def reset(self) -> Any:
        self.clocks = [0 for _ in OPEN]
        return super().reset()

    def step_row(self, i: int, action: Any) -> Row:
        obs, reward, terminated, _, info = self.envs[i].step(action)
        self.clocks[i] += 1
        truncated = self.clocks[i] >= 9
        if truncated:
            self.clocks[i] = 0
        info["TimeLimit.truncated"] = truncated and not terminated
        if terminated or truncated:
            info["terminal_observation"] = obs
            obs, self.reset_infos[i] = self.envs[i].reset()
        return obs, float(reward), terminated or truncated, info


@unseen("vec_env", broken=True, singles=(cart, cart))
class NoneForMissing(DummyVecEnv):
    """Two poles on carts, in a subclass of DummyVecEnv.

    Wrong: get_attr returns None for an attribute that the rows do not have.
    """

    def __init__(self) -> None:
        super().__init__([cart, cart])

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        return [getattr(env.unwrapped, attr_name, None) for env in self._get_target_envs(indices)]


@unseen("vec_env", broken=True, singles=SWINGS)
class SameGameAgain(RowsVecEnv):
    """Three noisy pendulums.

    Wrong: the seed of the last reset is given to the row again at each reset within a step.
    """

    def __init__(self) -> None:
        super().__init__(SWINGS)
        self.remembered: list[int | None] = [None for _ in self.envs]

    def reset(self) -> Any:
        self.remembered = list(self._seeds)
        return super().reset()

    def step_row(self, i: int, action: Any) -> Row:
        obs, reward, terminated, truncated, info = self.envs[i].step(action)
        info["TimeLimit.truncated"] = truncated and not terminated
        if terminated or truncated:
            info["terminal_observation"] = obs
            obs, self.reset_infos[i] = self.envs[i].reset(seed=self.remembered[i])
        return obs, float(reward), terminated or truncated, info


@unseen("vec_env", broken=True)
class RawTerminalPixels(VecEnvWrapper):
    """A wrapper that scales images to between 0 and 1.

    Wrong: the terminal observations in the infos are still the bytes.
    """

    def __init__(self) -> None:
        venv = DummyVecEnv([Camera] * 3)
        super().__init__(venv, observation_space=spaces.Box(0, 1, (8, 8, 3), np.float32))
        self.reset_infos = venv.reset_infos

    def reset(self) -> Any:
        return np.asarray(self.venv.reset(), np.float32) / np.float32(255)

    def step_wait(self) -> Step:
        obs, rewards, dones, infos = self.venv.step_wait()
        return np.asarray(obs, np.float32) / np.float32(255), rewards, dones, infos


@unseen(
    "vec_env",
    broken=True,
    singles=tuple(partial(stacked, make) for make in LIMITS),
    untold="that stacked frames are to be empty at first is known from the single environments",
)
class StackedFramesLeak(VecEnvWrapper):
    """A wrapper that shows the last three observations, the newest last, at first zeros.

    Wrong: at the end of an episode the stack goes on, with the frames of the old one in it.
    """

    def __init__(self) -> None:
        space = spaces.Box(0, 100, (3, 2), np.float32)
        venv = DummyVecEnv(list(LIMITS))
        super().__init__(venv, observation_space=space)
        self.reset_infos = venv.reset_infos
        self.frames = np.zeros((self.num_envs, 3, 2), np.float32)

    def reset(self) -> Any:
        first: Any = self.venv.reset()
        self.frames[:] = 0
        self.frames[:, -1] = first
        return self.frames.copy()

    def step_wait(self) -> Step:
        obs: Any
        obs, rewards, dones, infos = self.venv.step_wait()
        self.frames = np.roll(self.frames, -1, axis=1)
        for i in np.flatnonzero(dones):
            last = self.frames[i].copy()
            last[-1] = infos[i]["terminal_observation"]
            infos[i]["terminal_observation"] = last
        self.frames[:, -1] = obs
        return self.frames.copy(), rewards, dones, infos
