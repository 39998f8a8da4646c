"""Training gives the same weights as over `DummyVecEnv`."""

from __future__ import annotations

import csv
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics, vector

import sb3compat
from tests.envs import GYMNASIUM, Identity
from tests.lockstep import same
from tests.profiles import nightly
from tests.to_sb3.sb3.training import (
    SOURCES,
    EnvFns,
    Source,
    cartpoles,
    check_same_training,
    scripted,
    small,
    weights,
)
from tests.to_sb3.sb3.trainings import TRAININGS, check_weights

pytest.importorskip("stable_baselines3", reason="is about the features of stable-baselines3")

from stable_baselines3 import A2C
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv


def test_training_goes_on_the_same_after_save_load_and_set_env(
    any_source: Source, tmp_path: Path
) -> None:
    def make(env: Any, fns: EnvFns) -> Any:
        if isinstance(env, DummyVecEnv):
            return DummyVecEnv(fns)
        return sb3compat.to_sb3(any_source(fns))

    def train(env: Any) -> Any:
        model = A2C("MlpPolicy", env, **small()).learn(60)
        model.save(tmp_path / "model")
        second, third, fewer = (
            make(env, cartpoles(n, limit)) for n, limit in ((3, 9), (3, 15), (2, 9))
        )
        loaded = A2C.load(tmp_path / "model", env=second, device="cpu")
        same(weights(loaded), weights(model))
        loaded.set_random_seed(4)
        loaded.learn(150, reset_num_timesteps=False)
        assert loaded.get_env() is second
        halfway = weights(loaded)
        third.seed(9)
        loaded.set_env(third)
        loaded.learn(90, reset_num_timesteps=False)
        assert loaded.get_env() is third
        assert loaded.num_timesteps == 300
        with pytest.raises(AssertionError, match="number of environments"):
            loaded.set_env(fewer)
        for other in (second, third, fewer):
            other.close()
        return halfway, weights(loaded)

    check_same_training(any_source, cartpoles(), train)


SOURCES_HERE: dict[str, Any] = {
    **SOURCES,
    "sync-disabled": partial(SyncVectorEnv, autoreset_mode=AutoresetMode.DISABLED),
    "async-unshared": partial(AsyncVectorEnv, shared_memory=False),
    # Under a wrapper, the vector environment's own `step` and `reset` are used.
    "wrapped": lambda fns: Identity(SyncVectorEnv(fns)),
}
# Equal streams, which are compared elsewhere, give equal weights.
IN_CI = [
    ("ppo", "async-next"),
    ("ppo-dict", "wrapped"),
    ("dqn", "sync-same"),
    ("sac", "adapter"),
    ("her-infos", "async-unshared"),
    ("masked-ppo", "async-next"),
    ("recurrent-ppo", "sync-next"),
]
EVERY = [(name, source) for name in TRAININGS for source in SOURCES_HERE]


@pytest.mark.parametrize(("name", "source"), EVERY if nightly() else IN_CI)
# In `ppo-dict`, the agent may well stand where it started between two episodes.
@pytest.mark.filterwarnings("ignore:The last observation of row")
def test_training_gives_the_same_weights(name: str, source: str) -> None:
    check_weights(name, lambda fns: sb3compat.to_sb3(SOURCES_HERE[source](fns)))


def logged(env: Any, folder: Path) -> Any:
    """The lengths and returns of episodes that A2C logs, as read from its csv."""
    model = A2C("MlpPolicy", env, **small())
    model.set_logger(configure(str(folder), ["csv"]))
    model.learn(60, log_interval=2)
    model.logger.close()
    with (folder / "progress.csv").open() as file:
        rows = list(csv.DictReader(file))
    return [
        [float(row[f"rollout/{name}"]) for name in ("ep_len_mean", "ep_rew_mean")] for row in rows
    ]


@pytest.mark.parametrize("around", [False, True], ids=["within", "around"])
def test_statistics_of_episodes_are_logged(source: Source, around: bool, tmp_path: Path) -> None:
    if around and GYMNASIUM < (1, 4) and source is SOURCES["sync-same"]:
        pytest.skip("refused: wrong in this mode before Gymnasium 1.4")
    within: EnvFns = [lambda fn=fn: RecordEpisodeStatistics(fn()) for fn in scripted()]
    env = vector.RecordEpisodeStatistics(source(scripted())) if around else source(within)
    with closing(sb3compat.to_sb3(env)) as ours:
        got = logged(ours, tmp_path / "ours")
    expected = logged(DummyVecEnv(within), tmp_path / "reference")
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    assert len(got) == 2
