"""Broken VectorEnvs that loop over single environments, and a wrapper."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.toy_text.taxi import TaxiEnv
from gymnasium.vector import SyncVectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space, iterate
from gymnasium.wrappers import TimeLimit, TransformObservation

from conformance.specimens.unseen.entry import broken
from conformance.specimens.unseen.rows import Corridor, Swing
from conformance.specimens.unseen.vector_parts import (
    NEXT_STEP,
    SAME_STEP,
    Reset,
    RowsVectorEnv,
    Step,
)

LIMITS = tuple(partial(Corridor, 6, limit) for limit in (4, 6, 8))
SWINGS = tuple(partial(Swing, limit) for limit in (5, 7, 9, 11))


def taxi() -> gym.Env[Any, Any]:
    """Return the taxi, for twelve steps."""
    return TimeLimit(TaxiEnv(), 12)


def one_hot(numbers: Any) -> Any:
    """Return rows with a 1 in the place of the number."""
    return np.eye(500, dtype=np.float32)[numbers]


HOT = spaces.Box(0, 1, (500,), np.float32)


def hot_taxi() -> gym.Env[Any, Any]:
    """Return the taxi, whose number is one-hot."""
    return TransformObservation(taxi(), one_hot, HOT)


@broken(
    "VectorEnv",
    mode=NEXT_STEP,
    breaks="the rows are independent: the end of one does not end the episodes of others",
    told=False,
    why="the other rows show a reward of 0 and a jump, which may be what those rows do",
    singles=SWINGS,
)
class EveryoneRestarts(RowsVectorEnv):
    """Four pendulums with limits of their own.

    Wrong: as soon as one of them has ended, the next step resets all four.
    """

    def __init__(self) -> None:
        super().__init__(SWINGS, NEXT_STEP)

    def step(self, actions: Any) -> Step:
        if self.ended.any():
            obs, infos = self.reset()
            return obs, *self.nothing(), infos
        return super().step(actions)


@broken(
    "VectorEnv",
    mode=NEXT_STEP,
    breaks="row i of what a step returns belongs to sub-environment i",
    told=True,
    why="where an ended row stands in another place in the next step, that one is no reset",
    singles=LIMITS,
)
class CompletionOrder(SyncVectorEnv):
    """Three corridors in a pool, some of which take longer now and then.

    Wrong: the results of a step are put together in the order in which the rows were ready.
    """

    def __init__(self) -> None:
        super().__init__(LIMITS, autoreset_mode=NEXT_STEP)
        self.count = 0

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Reset:
        self.count = 0
        return super().reset(seed=seed, options=options)

    def step(self, actions: Any) -> Step:
        self.count += 1
        obs, rewards, terminations, truncations, infos = super().step(actions)
        ready = sorted(range(3), key=lambda i: (self.count * 7 + 5 * i) % 11)
        flags = terminations[ready], truncations[ready]
        order = {key: value[ready] for key, value in infos.items()}
        return obs[ready], rewards[ready], *flags, order


@broken(
    "VectorEnv",
    mode=SAME_STEP,
    breaks="final_obs are single observations, of the single observation space",
    told=True,
    why="they are integers where the space is a Box",
    singles=(hot_taxi,) * 3,
)
class OneHotForgetsFinal(VectorWrapper[Any, Any, Any, Any, Any]):
    """A wrapper that shows the state of three taxis as one-hot vectors.

    Wrong: the final observations in the infos remain numbers.
    """

    def __init__(self) -> None:
        super().__init__(SyncVectorEnv([taxi] * 3, autoreset_mode=SAME_STEP))
        self.single_observation_space = HOT
        self.observation_space = batch_space(HOT, 3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        obs, infos = self.env.reset(seed=seed, options=options)
        return one_hot(obs), infos

    def step(self, actions: Any) -> Step:
        obs, *rest, infos = self.env.step(actions)
        rewards, terminations, truncations = rest
        return one_hot(obs), rewards, terminations, truncations, infos


@broken(
    "VectorEnv",
    mode=SAME_STEP,
    breaks="an end by the time limit is a truncation, no termination",
    told=False,
    why="an end is an end; only the rows say of which kind",
    singles=LIMITS,
)
class LimitIsTermination(SyncVectorEnv):
    """Three corridors with limits, in a subclass of SyncVectorEnv.

    Wrong: what was one flag once became `terminations`, and `truncations` is always false.
    """

    def __init__(self) -> None:
        super().__init__(LIMITS, autoreset_mode=SAME_STEP)

    def step(self, actions: Any) -> Step:
        obs, rewards, terminations, truncations, infos = super().step(actions)
        return obs, rewards, terminations | truncations, np.zeros_like(truncations), infos


@broken(
    "VectorEnv",
    mode=SAME_STEP,
    breaks="where a row ends, final_info is the info of the step, the rest that of the reset",
    told=False,
    why="both are infos; only the rows say which of them is which",
    singles=LIMITS,
)
class SwappedInfos(RowsVectorEnv):
    """Three corridors with limits.

    Wrong: the info of the reset goes into final_info, and that of the last step stays where infos
    of steps are.
    """

    def __init__(self) -> None:
        super().__init__(LIMITS, SAME_STEP)

    def step_row(self, i: int, action: Any, infos: dict[str, Any]) -> tuple[float, bool, bool]:
        obs, reward, terminated, truncated, info = self.envs[i].step(action)
        if terminated or truncated:
            last = obs
            obs, reset_info = self.envs[i].reset()
            self._add_info(infos, {"final_obs": last, "final_info": reset_info}, i)
        self.last[i] = obs
        self._add_info(infos, info, i)
        return float(reward), terminated, truncated


@broken(
    "VectorEnv",
    mode=SAME_STEP,
    breaks="final_obs is the observation that the last action of the episode led to",
    told=False,
    why="it is an observation of that episode; only the row says that there was one more",
    singles=SWINGS,
)
class FinalBeforeMove(RowsVectorEnv):
    """Four pendulums with limits of their own.

    Wrong: the final observation is that of the step before, which the class still has at hand.
    """

    def __init__(self) -> None:
        super().__init__(SWINGS, SAME_STEP)

    def step(self, actions: Any) -> Step:
        infos: dict[str, Any] = {}
        rewards, terminations, truncations = self.nothing()
        for i, action in enumerate(iterate(self.action_space, actions)):
            obs, rewards[i], terminations[i], truncations[i], info = self.envs[i].step(action)
            if terminations[i] or truncations[i]:
                self._add_info(infos, {"final_obs": self.last[i], "final_info": info}, i)
                obs, info = self.envs[i].reset()
            self.last[i] = obs
            self._add_info(infos, info, i)
        return self.batch(), rewards, terminations, truncations, infos
