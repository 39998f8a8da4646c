"""MuJoCo and Atari: adapted, these environments give what they give in `DummyVecEnv`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import sb3compat
from tests.lockstep import same
from tests.to_sb3.driving import made, mode_of
from tests.to_sb3.sb3.training import one_thread, stream

pytest.importorskip("stable_baselines3", reason="is compared with stable-baselines3")

from stable_baselines3.common.atari_wrappers import AtariWrapper
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

# How long an episode lasts at most: Hopper falls before that, or not.
LIMITS = {"HalfCheetah-v5": 9, "Hopper-v5": 24}
BREAKOUT = "BreakoutNoFrameskip-v4"
KINDS = ("sync", "async")


def every_kind(test: Any) -> Any:
    return mode_of(pytest.mark.parametrize("name", KINDS)(test))


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Sums are taken in one order, so that equal inputs give equal bits."""
    with one_thread():
        yield


@pytest.fixture
def _mujoco(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco", reason="simulates HalfCheetah and Hopper")
    # MuJoCo writes its warnings into a file where it is.
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def _atari() -> None:
    gym.register_envs(pytest.importorskip("ale_py", reason="plays Atari games"))
    pytest.importorskip("cv2", reason="shrinks the pictures")


with_mujoco = pytest.mark.usefixtures("_mujoco")
with_atari = pytest.mark.usefixtures("_atari")


def closed_stream(env: Any, steps: int) -> list[Any]:
    with closing(env):
        return stream(env, steps, seed=3)


def endings(record: list[Any]) -> Counter[str]:
    """The number of endings of each kind."""
    seen: Counter[str] = Counter()
    for _, _, dones, infos, _ in record[2:]:
        for i in np.flatnonzero(dones):
            seen["truncated" if infos[i]["TimeLimit.truncated"] else "terminated"] += 1
            seen["monitored"] += "episode" in infos[i]
    return seen


# MuJoCo


@cache
def mujoco_stream(env_id: str) -> list[Any]:
    fns: Any = [partial(gym.make, env_id, max_episode_steps=LIMITS[env_id])] * 3
    return closed_stream(DummyVecEnv(fns), 100)


@with_mujoco
@every_kind
@pytest.mark.parametrize("env_id", LIMITS)
def test_mujoco_streams_equal_those_of_sb3(env_id: str, name: str, mode: AutoresetMode) -> None:
    expected = mujoco_stream(env_id)
    seen = endings(expected)
    assert seen["truncated"] >= 2
    assert (seen["terminated"] > 0) == (env_id == "Hopper-v5")
    kwargs: dict[str, Any] = {"vectorization_mode": name, "vector_kwargs": {"autoreset_mode": mode}}
    env = gym.make_vec(env_id, 3, max_episode_steps=LIMITS[env_id], **kwargs)
    same(closed_stream(sb3compat.to_sb3(env), 100), expected)


# Atari


# 200 frames are 50 steps: some episodes end with a life, others by the limit.
FRAMES = 200


def atari_helper(name: str) -> VecEnv:
    kwargs: dict[str, Any] = {"seed": 3, "env_kwargs": {"max_episode_steps": FRAMES}}
    if name == "reference":
        return make_atari_env(BREAKOUT, 2, **kwargs)
    kwargs |= {"vectorization_mode": name, "wrapper_class": AtariWrapper}
    return sb3compat.make_vec_env(BREAKOUT, 2, **kwargs)


@cache
def atari_stream() -> list[Any]:
    return closed_stream(atari_helper("reference"), 110)


@with_atari
@every_kind
def test_atari_streams_equal_those_of_sb3(name: str, mode: AutoresetMode) -> None:
    def make() -> gym.Env[Any, Any]:
        return AtariWrapper(Monitor(gym.make(BREAKOUT, max_episode_steps=FRAMES)))

    expected = atari_stream()
    seen = endings(expected)
    assert seen["terminated"] >= 2
    # For the monitor within, a lost life is not the end.
    assert seen["truncated"] == seen["monitored"] >= 2
    assert expected[0].shape == (2, 84, 84, 1)
    same(closed_stream(sb3compat.to_sb3(made(name, [make] * 2, mode)), 110), expected)
