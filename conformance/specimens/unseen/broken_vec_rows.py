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

from conformance.specimens.unseen.entry import broken
from conformance.specimens.unseen.rows import Camera, Corridor, Swing
from conformance.specimens.unseen.vec_parts import RowsVecEnv, Step

Row = tuple[Any, float, bool, dict[str, Any]]


def lake() -> gym.Env[Any, Any]:
    """Return a frozen lake of three by three, without slipping."""
    desc = ["SFF", "FHF", "FFG"]
    return gym.make("FrozenLake-v1", desc=desc, is_slippery=False, max_episode_steps=12)


LAKES = (lake,) * 4
COIN = tuple(partial(Corridor, length, 4) for length in (4, 5, 6))
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


@broken(
    "VecEnv",
    breaks="the reward of a step is that of its action, also where the episode ends",
    told=False,
    why="rewards that are always 0 are rewards; only the lake itself says that the goal is worth 1",
    singles=LAKES,
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


@broken(
    "VecEnv",
    breaks="infos[i]['TimeLimit.truncated'] is truncated and not terminated",
    told=False,
    why="an end at the limit may be a truncation; only the row says that it also terminated",
    singles=COIN,
)
class TruncatedAtGoal(RowsVecEnv):
    """Three short corridors, whose end is often reached in the very step of the limit.

    Wrong: the key says truncated where the row both terminated and was truncated.
    """

    def __init__(self) -> None:
        super().__init__(COIN)

    def step_row(self, i: int, action: Any) -> Row:
        obs, reward, terminated, truncated, info = self.envs[i].step(action)
        info["TimeLimit.truncated"] = truncated
        if terminated or truncated:
            info["terminal_observation"] = obs
            obs, self.reset_infos[i] = self.envs[i].reset()
        return obs, float(reward), terminated or truncated, info


@broken(
    "VecEnv",
    breaks="an episode begins anew in everything, its time limit included",
    told=False,
    why="episodes may have any length; that one was cut short only shows beside the right limit",
    singles=tuple(partial(limited, make) for make in OPEN),
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


@broken(
    "VecEnv",
    breaks="get_attr raises AttributeError for what there is not, by which has_attr goes",
    told=True,
    why="has_attr is true of any name that one makes up",
    singles=(cart, cart),
)
class NoneForMissing(DummyVecEnv):
    """Two poles on carts, in a subclass of DummyVecEnv.

    Wrong: get_attr returns None for an attribute that the rows do not have.
    """

    def __init__(self) -> None:
        super().__init__([cart, cart])

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        return [getattr(env.unwrapped, attr_name, None) for env in self._get_target_envs(indices)]


@broken(
    "VecEnv",
    breaks="get_attr and env_method answer for the indices in the order of the indices",
    told=True,
    why="asked for rows 2 and 0, it answers what row 0 and row 2 say when asked alone",
    singles=LIMITS,
)
class SortedIndices(DummyVecEnv):
    """Three corridors of different limits, in a subclass of DummyVecEnv.

    Wrong: the rows asked for are gathered in a set, and answer from the first to the last.
    """

    def __init__(self) -> None:
        super().__init__(list(LIMITS))

    def _get_target_envs(self, indices: VecEnvIndices) -> list[gym.Env[Any, Any]]:
        wanted = {i % self.num_envs for i in self._get_indices(indices)}
        return [env for i, env in enumerate(self.envs) if i in wanted]


@broken(
    "VecEnv",
    breaks="set_attr sets the attribute in the rows of the indices",
    told=True,
    why="get_attr finds the value in rows that were not named",
    singles=LIMITS,
)
class SetsEveryRow(DummyVecEnv):
    """Three corridors of different limits, in a subclass of DummyVecEnv.

    Wrong: set_attr does not look at the indices, and sets the attribute in all rows.
    """

    def __init__(self) -> None:
        super().__init__(list(LIMITS))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        for env in self.envs:
            setattr(env, attr_name, value)


@broken(
    "VecEnv",
    breaks="reset_infos[i] is the info of the last reset of row i, also of one within a step",
    told=False,
    why="an info may be the same for every episode; only the rows say what theirs was",
    singles=LIMITS,
)
class OldResetInfos(RowsVecEnv):
    """Three corridors whose resets say where the walk starts.

    Wrong: the info of a reset within a step is thrown away, and that of the first one stays.
    """

    def __init__(self) -> None:
        super().__init__(LIMITS)

    def step_row(self, i: int, action: Any) -> Row:
        before = self.reset_infos[i]
        row = super().step_row(i, action)
        self.reset_infos[i] = before
        return row


@broken(
    "VecEnv",
    breaks="each row gets its own seed, by incrementing the given one",
    told=True,
    why="seed() says so itself, and the rows move alike when given the same actions",
    singles=SWINGS,
)
class OneSeedForAll(DummyVecEnv):
    """Three noisy pendulums, in a subclass of DummyVecEnv.

    Wrong: every row is given the same seed.
    """

    def __init__(self) -> None:
        super().__init__(list(SWINGS))

    def seed(self, seed: int | None = None) -> Any:
        if seed is None:
            seed = int(np.random.randint(0, 2**31))
        self._seeds = [seed for _ in self.envs]
        return self._seeds


@broken(
    "VecEnv",
    breaks="a seed is used for one reset only",
    told=True,
    why="after seed() each row begins every episode alike, and without seed() it does not",
    singles=SWINGS,
)
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


@broken(
    "VecEnv",
    breaks="terminal observations are of the observation space, as all observations",
    told=True,
    why="the dtype is uint8 where the space says float32",
)
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


@broken(
    "VecEnv",
    breaks="the first observation of an episode shows nothing of the one before",
    told=False,
    why="that stacked frames are to be empty at first is known from the single environments",
    singles=tuple(partial(stacked, make) for make in LIMITS),
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
