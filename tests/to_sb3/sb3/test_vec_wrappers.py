"""SB3's `VecEnvWrapper`s do the same around an adapted environment as around `DummyVecEnv`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from tests.envs import BOX
from tests.lockstep import same
from tests.native import NativeEnv
from tests.to_sb3.driving import NEXT_STEP, SAME_STEP, made
from tests.to_sb3.sb3.trainings import Source, both, scripted

pytest.importorskip("stable_baselines3", reason="is about the features of stable-baselines3")

from stable_baselines3.common.vec_env import (
    VecCheckNan,
    VecExtractDictObs,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
    VecTransposeImage,
)

IMAGE = spaces.Box(0, 255, (8, 10, 3), np.uint8)
DICT = spaces.Dict({"image": IMAGE, "position": BOX})
SOURCES: dict[str, Source] = {
    "sync": partial(made, "sync", mode=SAME_STEP),
    "async": partial(made, "async"),
    "native": partial(NativeEnv, mode=NEXT_STEP),  # type: ignore[dict-item]
}


def stream(env: Any) -> list[Any]:
    """The results of the environment, without the seconds that an episode took."""
    env.seed(5)
    env.action_space.seed(5)
    record = [env.reset(), [dict(info) for info in env.reset_infos]]
    for _ in range(25):
        actions = np.stack([env.action_space.sample() for _ in range(env.num_envs)])
        *result, infos = env.step(actions)
        for info in infos:
            info.get("episode", {}).pop("t", None)
        record.append((*result, infos, [dict(info) for info in env.reset_infos]))
    return record


# The wrapper, the space inside, and the shape of an observation outside.
@pytest.mark.parametrize(
    ("wrap", "space", "shape"),
    [
        (VecNormalize, BOX, (3,)),
        (partial(VecMonitor, info_keywords=("shared",)), BOX, (3,)),
        (partial(VecFrameStack, n_stack=4), IMAGE, (8, 10, 12)),
        (VecTransposeImage, IMAGE, (3, 8, 10)),
        (partial(VecCheckNan, raise_exception=True), BOX, (3,)),
        (partial(VecExtractDictObs, key="position"), DICT, (3,)),
    ],
    ids=["normalize", "monitor", "stack images", "transpose", "check nan", "extract"],
)
@pytest.mark.parametrize("source", SOURCES)
def test_wrapper_gives_the_same_stream(
    source: str, wrap: Any, space: Any, shape: tuple[int, ...]
) -> None:
    with both(SOURCES[source], scripted(observation_space=space), wrap) as (ours, reference):
        assert ours.observation_space == reference.observation_space
        got = stream(ours)
        same(got, stream(reference))
    assert got[0].shape == (3, *shape)
    infos = [info for step in got[2:] for info in step[3]]
    last = [info["terminal_observation"] for info in infos if "terminal_observation" in info]
    assert len(last) >= 15
    assert all(obs.shape == shape for obs in last)
