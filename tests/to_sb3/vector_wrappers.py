"""Every vector wrapper of Gymnasium, the single one that does the same, and what they wrap."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces, wrappers
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import vector

from tests.envs import GYMNASIUM, MakeEnv, Script, script

ACTIONS = spaces.Box(-1, 1, (2,), np.float32)
OBSERVATIONS: tuple[spaces.Space[Any], ...] = (
    spaces.Box(-1, 1, (2, 3), np.float32),
    spaces.Box(0, 255, (8, 8, 3), np.uint8),
    spaces.Dict({"a": spaces.Box(-1, 1, (2,), np.float32), "b": spaces.Box(0, 9, (1,), np.int32)}),
)
AnyEnv = Any


class Twins(NamedTuple):
    """A vector wrapper, and the wrapper that does the same to each sub-environment."""

    batch: Callable[[AnyEnv], AnyEnv]
    single: Callable[[AnyEnv], AnyEnv]


def halved(value: Any) -> Any:
    return value * np.float32(0.5) if getattr(value, "dtype", None) != np.uint8 else value // 2


def half_reward(reward: Any) -> Any:
    return reward * 0.5


def of_batches(name: str, **kwargs: Any) -> Callable[[AnyEnv], AnyEnv]:
    return lambda env: getattr(vector, name)(env, **kwargs)


def both(name: str, **kwargs: Any) -> Twins:
    return Twins(of_batches(name, **kwargs), lambda env: getattr(wrappers, name)(env, **kwargs))


def stats_key(env: AnyEnv) -> str:
    return "outer" if "RecordEpisodeStatistics" in repr(env) else "episode"


FOLDER = tempfile.TemporaryDirectory()  # RecordVideo makes it, whether it records or not


def record_video(env: AnyEnv) -> AnyEnv:
    return vector.RecordVideo(env, FOLDER.name, episode_trigger=lambda _: False)


TWINS: dict[str, Twins] = {
    "FilterObservation": both("FilterObservation", filter_keys=["a"]),
    "FlattenObservation": both("FlattenObservation"),
    "GrayscaleObservation": both("GrayscaleObservation"),
    "ResizeObservation": both("ResizeObservation", shape=(4, 4)),
    "ReshapeObservation": Twins(
        lambda env: vector.ReshapeObservation(
            env, (env.single_observation_space.shape or (0,))[::-1]
        ),
        lambda env: wrappers.ReshapeObservation(env, (env.observation_space.shape or (0,))[::-1]),
    ),
    "RescaleObservation": both("RescaleObservation", min_obs=np.float32(0), max_obs=np.float32(3)),
    "DtypeObservation": both("DtypeObservation", dtype=np.float64),
    "ClipAction": both("ClipAction"),
    "RescaleAction": both("RescaleAction", min_action=np.float32(-3), max_action=np.float32(3)),
    "ClipReward": both("ClipReward", min_reward=0.15, max_reward=1.0),
    "RecordEpisodeStatistics": Twins(
        lambda env: vector.RecordEpisodeStatistics(env, stats_key=stats_key(env)),
        lambda env: wrappers.RecordEpisodeStatistics(env, stats_key=stats_key(env)),
    ),
    "RecordVideo": Twins(record_video, lambda env: env),
    "HumanRendering": Twins(of_batches("HumanRendering"), lambda env: env),
}
for part, kwargs in {
    "Observation": {"func": halved, "observation_space": None},
    "Action": {"func": halved, "action_space": None},
    "Reward": {"func": half_reward},
}.items():
    TWINS[f"Transform{part}"] = twins = both(f"Transform{part}", **kwargs)
    single = getattr(wrappers, f"Transform{part}")
    vectorized = of_batches(f"VectorizeTransform{part}", wrapper=single, **kwargs)
    TWINS[f"VectorizeTransform{part}"] = Twins(vectorized, twins.single)
if GYMNASIUM < (1, 2):
    del TWINS["RecordVideo"]  # which has been there since


def torch_arrays(env: AnyEnv) -> AnyEnv:
    import torch

    return vector.ArrayConversion(env, np, torch)


# Those without such a twin. Older Gymnasium has no ArrayConversion.
OTHERS: dict[str, Callable[[AnyEnv], AnyEnv]] = {
    name: of_batches(name)
    for name in (
        *("DictInfoToList", "NormalizeReward", "NormalizeObservation"),
        *("NumpyToTorch", "JaxToNumpy", "JaxToTorch"),
    )
}
if GYMNASIUM >= (1, 2):
    OTHERS["ArrayConversion"] = torch_arrays


class FastEnv(MakeEnv):
    """Shown as fast as possible: HumanRendering waits according to `render_fps`."""

    def __call__(self) -> gym.Env[Any, Any]:
        env = super().__call__()
        env.unwrapped.metadata = {**env.unwrapped.metadata, "render_fps": 100_000}
        return env


def scripted(space: spaces.Space[Any] = OBSERVATIONS[0]) -> Script:
    return script(
        observation_space=space,
        action_space=ACTIONS,
        lengths=(2, 3, 1),
        endings=("truncated", "both", "terminated"),
    )


def rows(n: int, space: spaces.Space[Any] = OBSERVATIONS[0]) -> list[MakeEnv]:
    """One function for each of n rows."""
    return [FastEnv(scripted(space), i) for i in range(n)]


@cache
def fitting_space(*names: str) -> spaces.Space[Any] | None:
    """The first space on which Gymnasium's own stack of these, the innermost first, can be run."""
    for space in OBSERVATIONS:
        single: AnyEnv = rows(1, space)[0]()
        batch: AnyEnv = SyncVectorEnv(rows(2, space))
        try:
            for name in names:
                single, batch = TWINS[name].single(single), TWINS[name].batch(batch)
            for env in (single, batch):
                env.reset(seed=1)
                env.step(env.action_space.sample())
        except (AssertionError, TypeError, ValueError, KeyError, AttributeError):
            continue
        return space
    return None
