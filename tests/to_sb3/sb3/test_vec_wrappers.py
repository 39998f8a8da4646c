"""SB3's `VecEnvWrapper`s do the same around an adapted environment as around `DummyVecEnv`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from tests.envs import BOX
from tests.lockstep import same
from tests.to_sb3.sb3.training import Source, both, scripted, stream

pytest.importorskip("stable_baselines3", reason="is about the features of stable-baselines3")

from stable_baselines3.common.monitor import load_results
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    VecCheckNan,
    VecExtractDictObs,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
    VecTransposeImage,
)

IMAGE = spaces.Box(0, 255, (8, 10, 3), np.uint8)


def test_vec_monitor_records_the_same(any_source: Source, tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="SB3 reads its csv files with it")
    names = iter(("ours", "reference"))

    def wrap(env: Any) -> Any:
        return VecMonitor(env, str(tmp_path / next(names) / "log"), info_keywords=("shared",))

    with both(any_source, scripted(), wrap) as (ours, reference):
        same(stream(ours), stream(reference))
        assert ours.episode_count == reference.episode_count >= 15
    got, expected = (load_results(str(tmp_path / name)) for name in ("ours", "reference"))
    assert list(got.columns) == list(expected.columns) == ["index", "r", "l", "t", "shared"]
    assert len(set(got["r"])) > 3
    for column in ("r", "l", "shared"):
        assert list(got[column]) == list(expected[column])


STACK = partial(VecFrameStack, n_stack=4)
POSITION = partial(VecExtractDictObs, key="position")
DICT = spaces.Dict({"image": IMAGE, "position": BOX})


# The wrapper, the space inside, and the shape of an observation outside.
@pytest.mark.parametrize(
    ("wrap", "space", "shape"),
    [
        (VecNormalize, BOX, (3,)),
        (STACK, BOX, (12,)),
        (STACK, IMAGE, (8, 10, 12)),
        (VecTransposeImage, IMAGE, (3, 8, 10)),
        (partial(VecCheckNan, raise_exception=True), BOX, (3,)),
        (POSITION, DICT, (3,)),
    ],
    ids=["normalize", "stack", "stack images", "transpose", "check nan", "extract"],
)
def test_wrapper_gives_the_same_stream(
    any_source: Source, wrap: Any, space: Any, shape: tuple[int, ...]
) -> None:
    with both(any_source, scripted(observation_space=space), wrap) as (ours, reference):
        assert ours.observation_space == reference.observation_space
        got = stream(ours)
        same(got, stream(reference))
    assert got[0].shape == (3, *shape)
    infos = [info for step in got[2:] for info in step[3]]
    last = [info["terminal_observation"] for info in infos if "terminal_observation" in info]
    assert len(last) >= 15
    assert all(obs.shape == shape for obs in last)


def test_vec_normalize_keeps_the_same_statistics_also_when_saved(
    any_source: Source, tmp_path: Path
) -> None:
    with both(any_source, scripted(), VecNormalize) as envs:
        for env in envs:
            stream(env)
            assert np.all(env.obs_rms.var != 1)
            env.save(str(tmp_path / str(isinstance(env.venv, DummyVecEnv))))
        ours, reference = envs
        for name in ("obs_rms", "ret_rms"):
            same(vars(getattr(ours, name)), vars(getattr(reference, name)))
        same(ours.get_original_obs(), reference.get_original_obs())
        same(ours.get_original_reward(), reference.get_original_reward())

    def load(env: Any) -> Any:
        loaded = VecNormalize.load(str(tmp_path / str(isinstance(env, DummyVecEnv))), env)
        assert loaded.obs_rms.count > 75
        return loaded

    with both(any_source, scripted(), load) as (ours, reference):
        same(stream(ours), stream(reference))
        same(vars(ours.obs_rms), vars(reference.obs_rms))
