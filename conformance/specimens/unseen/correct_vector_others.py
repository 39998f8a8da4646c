"""Correct VectorEnvs that reset rows in the same step, and such of Gymnasium's own parts."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space

from conformance.specimens.registry import unseen
from conformance.specimens.unseen.rows import Gauge, Letters, Weather
from conformance.specimens.unseen.vector_parts import (
    DISABLED,
    NEXT_STEP,
    SAME_STEP,
    NativeVectorEnv,
    Reset,
    Step,
)

WEATHERS = tuple(partial(Weather, days) for days in (3, 5, 6))
TEXTS = (partial(Letters, "text"),) * 3
SEQUENCES = (partial(Letters, "sequence"),) * 3
EITHERS = (partial(Letters, "either"),) * 3
GAUGES = tuple(partial(Gauge, width) for width in (2, 3, 5))


def finals_of(obs: Any, ended: Any) -> dict[str, Any]:
    """Return what the rows that ended leave behind, if any did; infos are empty here."""
    if not ended.any():
        return {}
    finals = np.full(len(ended), None, object)
    for i in np.flatnonzero(ended):
        finals[i] = obs[i].copy()
    told: dict[str, Any] = {"final_info": {}, "_final_info": ended.copy()}
    return {"final_obs": finals, "_final_obs": ended.copy(), **told}


@unseen("vector_env", mode=SAME_STEP)
class OneStepSameStep(NativeVectorEnv):
    """Three quizzes of one question each: every step ends all episodes.

    final_info tells the right answer, and the reset the number of the question.
    """

    def __init__(self) -> None:
        question = spaces.Box(0, 9, (2,), np.float32)
        super().__init__(3, question, spaces.Discrete(19), SAME_STEP)
        self.terms, self.count = np.zeros((3, 2), np.int64), 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        super().reset(seed=seed)
        self.count = 0
        return self.ask()

    def ask(self) -> Reset:
        """Draw a question for each row."""
        self.terms = self.np_random.integers(0, 10, (3, 2))
        self.count += 1
        numbers = {"number": np.full(3, self.count), "_number": np.ones(3, bool)}
        return self.terms.astype(np.float32), numbers

    def step(self, actions: Any) -> Step:
        everyone, right = np.ones(3, bool), self.terms.sum(axis=1)
        rewards = (np.asarray(actions) == right).astype(np.float64)
        finals = finals_of(self.terms.astype(np.float32), everyone)
        told = {"right": right, "_right": everyone.copy()}
        obs, infos = self.ask()
        infos |= finals | {"final_info": told, "_final_info": everyone.copy()}
        return obs, rewards, everyone, np.zeros(3, bool), infos


class Tides(VectorEnv[Any, Any, Any]):
    """Four harbours between flood and ebb, which end at either; one generator serves them all."""

    def __init__(self) -> None:
        self.num_envs = 4
        self.single_observation_space = spaces.Box(-5, 5, (2,), np.float32)
        self.single_action_space = spaces.Discrete(3)
        self.observation_space = batch_space(self.single_observation_space, 4)
        self.action_space = batch_space(self.single_action_space, 4)
        self.water, self.steps = np.zeros((4, 2), np.float32), np.zeros(4, np.int64)

    def begin(self, rows: Any) -> None:
        """Draw new tides."""
        self.water[rows] = self.np_random.uniform(-1, 1, (rows.sum(), 2))
        self.steps[rows] = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        super().reset(seed=seed)
        self.begin(np.ones(4, bool))
        return self.water.copy(), {}

    def step(self, actions: Any) -> Step:
        self.water[:, 1] = np.clip(self.water[:, 1] + 0.5 * (np.asarray(actions) - 1), -2, 2)
        self.water[:, 0] += self.water[:, 1]
        self.steps += 1
        terminations, truncations = np.abs(self.water[:, 0]) > 3, self.steps >= 8
        self.water = np.clip(self.water, -5, 5)
        rewards = -np.abs(self.water[:, 0]).astype(np.float64)
        ended = terminations | truncations
        infos = self.finals(ended)
        self.begin(ended)
        return self.water.copy(), rewards, terminations, truncations, infos

    def finals(self, ended: Any) -> dict[str, Any]:
        """Return the final observations in a form of one's choice."""
        return finals_of(self.water, ended)


@unseen(
    "vector_env",
    mode=SAME_STEP,
    rightly={
        "autoreset_mode_declared": "Gymnasium's `RecordEpisodeStatistics` and `VectorizeTransform"
        "Observation` raise a TypeError unless it is an `AutoresetMode`"
    },
)
class ModeByValue(Tides):
    """Four harbours whose autoreset mode is only told by metadata, and there by its value."""

    metadata = {"autoreset_mode": "SameStep", "render_modes": []}


@unseen("vector_env", mode=SAME_STEP)
class DenseFinals(Tides):
    """Four harbours whose final observations are one array for all rows, with a mask.

    In rows that did not end it holds what they observe.
    """

    metadata = {"autoreset_mode": SAME_STEP, "render_modes": []}

    def finals(self, ended: Any) -> dict[str, Any]:
        finals = super().finals(ended)
        return finals | {"final_obs": self.water.copy()} if finals else finals


@unseen("vector_env", mode=SAME_STEP, singles=WEATHERS)
def nested_weather() -> VectorEnv[Any, Any, Any]:
    """Return three stations of weather, with nested observations and infos."""
    return SyncVectorEnv(WEATHERS, autoreset_mode=SAME_STEP)


@unseen("vector_env", mode=NEXT_STEP, singles=TEXTS)
def growing_texts() -> VectorEnv[Any, Any, Any]:
    """Return three rows that observe texts, a batch of which is a tuple."""
    return SyncVectorEnv(TEXTS, autoreset_mode=NEXT_STEP)


@unseen("vector_env", mode=SAME_STEP, singles=SEQUENCES)
def growing_sequences() -> VectorEnv[Any, Any, Any]:
    """Return three rows that observe sequences, of differing lengths."""
    return SyncVectorEnv(SEQUENCES, autoreset_mode=SAME_STEP)


@unseen("vector_env", mode=DISABLED, singles=EITHERS)
def one_of_two() -> VectorEnv[Any, Any, Any]:
    """Return three rows that observe either a number or a vector (OneOf)."""
    return SyncVectorEnv(EITHERS, autoreset_mode=DISABLED)


@unseen("vector_env", mode=DISABLED, singles=GAUGES)
def differing_gauges() -> VectorEnv[Any, Any, Any]:
    """Return three gauges of different widths, with observation_mode="different"."""
    return SyncVectorEnv(GAUGES, observation_mode="different", autoreset_mode=DISABLED)
