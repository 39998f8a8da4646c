"""Training and evaluation give the same as over `DummyVecEnv`."""

from __future__ import annotations

import itertools
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import sb3compat
from tests.envs import Identity
from tests.lockstep import same
from tests.profiles import nightly
from tests.to_sb3.driving import DISABLED, MODES, SAME_STEP, made
from tests.to_sb3.sb3.trainings import TRAININGS, EnvFns, check_weights, one_thread, small, weights

pytest.importorskip("stable_baselines3", reason="is about the features of stable-baselines3")

from stable_baselines3 import A2C
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize


def adapter(fns: EnvFns) -> Any:
    """SB3's own class, presented to Gymnasium, in one of Gymnasium's wrappers."""
    return Identity(sb3compat.to_gymnasium(DummyVecEnv(fns), autoreset_mode="Disabled"))


SOURCES: dict[str, Any] = {
    **{f"sync {mode.name}": partial(made, "sync", mode=mode) for mode in MODES},
    "async": partial(made, "async"),
    "async unshared": partial(made, "async unshared"),
    # Under a wrapper, the vector environment's own `step` and `reset` are used.
    "sync wrapped": partial(made, "sync wrapped"),
    "adapter": adapter,
}
# Equal streams, which are compared elsewhere, give equal weights.
IN_CI = [
    ("ppo", "async"),
    ("ppo-dict", "sync wrapped"),
    ("dqn", "sync SAME_STEP"),
    ("sac", "adapter"),
    ("her", "async unshared"),
    ("masked-ppo", "async"),
    ("recurrent-ppo", "sync NEXT_STEP"),
]
# Each training and, in turn, each source.
IN_TURN = list(zip(TRAININGS, itertools.cycle(SOURCES), strict=False))


@pytest.mark.parametrize(("name", "source"), IN_TURN if nightly() else IN_CI)
# In `ppo-dict`, the agent may well stand where it started between two episodes.
@pytest.mark.filterwarnings("ignore:The last observation of row")
def test_training_gives_the_same_weights(name: str, source: str) -> None:
    check_weights(name, lambda fns: sb3compat.to_sb3(SOURCES[source](fns)))


@pytest.mark.parametrize("mode", [SAME_STEP, DISABLED], ids=["SAME_STEP", "DISABLED"])
def test_evaluation_while_training_gives_the_same_results(mode: Any, tmp_path: Path) -> None:
    """It asks whether a monitor is in each row, and reads from it what it has seen."""
    fns = [lambda: Monitor(gym.make("CartPole-v1", max_episode_steps=20))] * 3

    def train(build: Any, folder: Path) -> Any:
        evaluated, env = build(fns[:2]), build(fns)
        evaluated.seed(6)
        callback = EvalCallback(
            VecNormalize(evaluated, training=False, norm_reward=False),
            n_eval_episodes=5,
            eval_freq=40,
            log_path=str(folder),
            verbose=0,
        )
        model = A2C("MlpPolicy", VecNormalize(env), **small())
        with warnings.catch_warnings():
            # SB3 warns where the two environments are of different kinds, or a monitor is missing.
            warnings.simplefilter("error", UserWarning)
            model.learn(240, callback=callback)
        evaluated.close()
        env.close()
        log = np.load(folder / "evaluations.npz")
        return weights(model), {name: log[name] for name in log.files}

    with one_thread():
        got = train(lambda fns: sb3compat.to_sb3(made("sync", fns, mode)), tmp_path / "ours")
        expected = train(DummyVecEnv, tmp_path / "reference")
    same(got, expected)
    assert len(np.unique(got[1]["results"])) > 2
