"""Statistics of episodes are logged as over `DummyVecEnv`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import RecordEpisodeStatistics
from gymnasium.wrappers import vector as vector_wrappers

import sb3compat
from tests.envs import GYMNASIUM
from tests.to_sb3.sb3.training import SOURCES, EnvFns, Source, both, scripted, small

pytest.importorskip("stable_baselines3", reason="is about the features of stable-baselines3")

from stable_baselines3 import A2C
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv


def logged(env: Any, folder: Path) -> Any:
    """What A2C logs about episodes, as read from its csv."""
    model = A2C("MlpPolicy", env, **small())
    model.set_logger(configure(str(folder), ["csv"]))
    model.learn(60, log_interval=2)
    model.logger.close()
    header, *rows = ((folder / "progress.csv").read_text().strip()).split("\n")
    columns = header.split(",")
    wanted = [columns.index(f"rollout/{name}") for name in ("ep_len_mean", "ep_rew_mean")]
    return np.array([[float(row.split(",")[i]) for i in wanted] for row in rows])


def with_statistics(fns: EnvFns) -> EnvFns:
    return [lambda fn=fn: RecordEpisodeStatistics(fn()) for fn in fns]


def test_statistics_of_sub_environments_are_logged(source: Source, tmp_path: Path) -> None:
    with both(source, with_statistics(scripted())) as (ours, reference):
        got = logged(ours, tmp_path / "ours")
        expected = logged(reference, tmp_path / "reference")
    np.testing.assert_array_equal(got, expected)
    assert len(got) == 2
    assert np.all(got[:, 0] != got[:, 1])


def test_statistics_around_are_logged(source: Source, tmp_path: Path) -> None:
    if GYMNASIUM < (1, 4) and source is SOURCES["sync-same"]:
        pytest.skip("refused: wrong in this mode before Gymnasium 1.4")
    ours = sb3compat.to_sb3(vector_wrappers.RecordEpisodeStatistics(source(scripted())))
    reference = DummyVecEnv(with_statistics(scripted()))
    with closing(ours):
        got = logged(ours, tmp_path / "ours")
    expected = logged(reference, tmp_path / "reference")
    np.testing.assert_array_equal(got[:, 0], expected[:, 0])
    np.testing.assert_allclose(got[:, 1], expected[:, 1], rtol=1e-5)


def test_statistics_around_native_cartpole_are_logged(tmp_path: Path) -> None:
    native = gym.make_vec("CartPole-v1", num_envs=4, max_episode_steps=6)
    env = sb3compat.to_sb3(vector_wrappers.RecordEpisodeStatistics(native))
    # No pole falls within six steps.
    np.testing.assert_array_equal(logged(env, tmp_path), [[6, 6]])
