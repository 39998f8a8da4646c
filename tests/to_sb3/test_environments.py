"""MuJoCo and Atari: adapted, these environments give what they give in `DummyVecEnv`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import PassiveEnvChecker, TimeLimit

import sb3compat
from tests.lockstep import same
from tests.to_sb3.sb3.training import one_thread, weights

pytest.importorskip("stable_baselines3", reason="is compared with stable-baselines3")

import torch
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.atari_wrappers import AtariWrapper, EpisodicLifeEnv
from stable_baselines3.common.env_util import make_atari_env, make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    VecEnv,
    VecFrameStack,
    VecNormalize,
    VecTransposeImage,
    is_vecenv_wrapped,
)

# How long an episode lasts at most: Hopper falls before that, or not.
LIMITS = {"HalfCheetah-v5": 9, "Hopper-v5": 24}
BREAKOUT = "BreakoutNoFrameskip-v4"
KINDS = [(name, mode) for name in ("sync", "async") for mode in AutoresetMode]
MAKE: dict[str, Callable[..., VecEnv]] = {
    name: partial(sb3compat.make_vec_env, vectorization_mode=name) for name in ("sync", "async")
}

every_kind = pytest.mark.parametrize(
    ("name", "mode"), KINDS, ids=[f"{name}-{mode.name}" for name, mode in KINDS]
)


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


def adapted(env_id: str, num_envs: int, name: str, mode: AutoresetMode) -> Any:
    kwargs: dict[str, Any] = {"vectorization_mode": name, "vector_kwargs": {"autoreset_mode": mode}}
    limit = LIMITS[env_id]
    return sb3compat.to_sb3(gym.make_vec(env_id, num_envs, max_episode_steps=limit, **kwargs))


def dummy(env_id: str, num_envs: int) -> DummyVecEnv:
    fns = [partial(gym.make, env_id, max_episode_steps=LIMITS[env_id])] * num_envs
    return DummyVecEnv(fns)  # type: ignore[arg-type]


def stream(env: VecEnv, steps: int) -> list[Any]:
    """The results of the environment, without the seconds that an episode took."""
    with closing(env):
        env.seed(3)
        env.action_space.seed(3)
        record = [env.reset(), [dict(info) for info in env.reset_infos]]
        for _ in range(steps):
            actions = np.stack([env.action_space.sample() for _ in range(env.num_envs)])
            obs, rewards, dones, infos = env.step(actions)
            for info in infos:
                if "episode" in info:
                    info["episode"] = {k: v for k, v in info["episode"].items() if k != "t"}
            reset_infos = [dict(info) for info in env.reset_infos]
            record.append((obs, rewards, dones, infos, reset_infos))
    return record


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
    return stream(dummy(env_id, 3), 100)


@with_mujoco
@every_kind
@pytest.mark.parametrize("env_id", LIMITS)
def test_mujoco_streams_equal_those_of_sb3(env_id: str, name: str, mode: AutoresetMode) -> None:
    expected = mujoco_stream(env_id)
    seen = endings(expected)
    assert seen["truncated"] >= 2
    assert (seen["terminated"] > 0) == (env_id == "Hopper-v5")
    same(stream(adapted(env_id, 3, name, mode), 100), expected)


@with_mujoco
@pytest.mark.parametrize("name", MAKE)
def test_mujoco_model_can_be_normalized_saved_and_watched(name: str, tmp_path: Path) -> None:
    def run(helper: Callable[..., VecEnv], folder: Path) -> Any:
        kwargs: dict[str, Any] = {"seed": 0, "env_kwargs": {"max_episode_steps": 9}}
        env = VecNormalize(helper("HalfCheetah-v5", 2, **kwargs), clip_obs=5.0)
        model = PPO("MlpPolicy", env, n_steps=32, batch_size=32, n_epochs=1, seed=1, device="cpu")
        model.learn(64)
        model.save(folder / "agent")
        env.save(str(folder / "statistics"))
        env.close()
        other = VecNormalize.load(str(folder / "statistics"), helper("HalfCheetah-v5", 2, **kwargs))
        other.training = other.norm_reward = False
        loaded = PPO.load(folder / "agent", env=other, device="cpu")
        same(weights(loaded), weights(model))
        with closing(other):
            obs = other.reset()
            record = [obs]
            for _ in range(20):
                obs, rewards, dones, _ = other.step(loaded.predict(obs, deterministic=True)[0])
                record.append((obs, rewards, dones))
        same(vars(other.obs_rms), vars(env.obs_rms))
        return weights(model), record, vars(env.obs_rms), vars(env.ret_rms)

    (tmp_path / "reference").mkdir()
    same(run(MAKE[name], tmp_path), run(make_vec_env, tmp_path / "reference"))


@with_mujoco
@every_kind
def test_mujoco_attributes_can_be_read_and_set(name: str, mode: AutoresetMode) -> None:
    def run(env: VecEnv) -> list[Any]:
        still = np.zeros((2, 6), np.float32)
        with closing(env):
            seen = [env.env_is_wrapped(cls) for cls in (TimeLimit, PassiveEnvChecker, Monitor)]
            env.seed(0)
            env.reset()
            env.env_method("set_state", np.zeros(9), np.ones(9), indices=[1])
            seen.append(env.step(still)[:3])
            seen.append(env.get_attr("dt"))
            # On the environment itself: the simulation goes on by one fifth in each step.
            env.env_method("set_wrapper_attr", "frame_skip", 1)
            seen.append(env.get_attr("dt"))
            seen.append(env.step(still)[:3])
            # On the outermost wrapper: of no consequence for the simulation.
            env.set_attr("frame_skip", 20)
            seen.append(env.get_attr("frame_skip"))
            seen.append(env.get_attr("dt"))
            seen.append(env.step(still)[:3])
            seen.append([data.time for data in env.get_attr("data")])
        return seen

    got = run(adapted("HalfCheetah-v5", 2, name, mode))
    same(got, run(dummy("HalfCheetah-v5", 2)))
    assert got[:3] == [[True, True], [True, True], [False, False]]
    assert got[4] == pytest.approx([0.05, 0.05])
    assert got[5] == got[8] == pytest.approx([0.01, 0.01])
    assert got[-1] == pytest.approx([0.07, 0.07])


# A spawned worker, as a process that has drawn must not fork.
PICTURES = """
import sys
import gymnasium as gym
import numpy as np

KWARGS = {"max_episode_steps": 3, "render_mode": "rgb_array", "width": 48, "height": 32}

def pictures(env):
    env.seed(0)
    env.reset()
    shown = []
    for _ in range(5):
        env.step(np.full((1, 6), 0.5, np.float32))
        shown.append(env.render())
    env.close()
    return np.array(shown)

if __name__ == "__main__":
    import sb3compat
    from stable_baselines3.common.vec_env import DummyVecEnv

    try:
        expected = pictures(DummyVecEnv([lambda: gym.make("HalfCheetah-v5", **KWARGS)]))
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
        sys.exit(77)
    assert expected.shape == (5, 32, 48, 3)
    assert (expected[0] != expected[1]).any()
    for name, kwargs in (("sync", {}), ("async", {"context": "spawn"})):
        made = gym.make_vec(
            "HalfCheetah-v5", 1, vectorization_mode=name, vector_kwargs=kwargs, **KWARGS
        )
        assert (pictures(sb3compat.to_sb3(made)) == expected).all(), name
"""


@with_mujoco
def test_mujoco_pictures_equal_those_of_dummy_vec_env(tmp_path: Path) -> None:
    script = tmp_path / "pictures.py"
    script.write_text(PICTURES)
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MUJOCO_GL": "egl"},
    )
    if done.returncode == 77:
        pytest.skip(f"MuJoCo cannot draw here without a display: {done.stdout.strip()}")
    assert done.returncode == 0, done.stderr


# Atari


def atari(name: str, mode: AutoresetMode, limit: int) -> VecEnv:
    def make() -> gym.Env[Any, Any]:
        return AtariWrapper(Monitor(gym.make(BREAKOUT, max_episode_steps=limit)))

    env = {"sync": SyncVectorEnv, "async": AsyncVectorEnv}[name]([make] * 2, autoreset_mode=mode)
    return sb3compat.to_sb3(env)


def atari_helper(name: str, limit: int) -> VecEnv:
    kwargs: dict[str, Any] = {"seed": 3, "env_kwargs": {"max_episode_steps": limit}}
    if name == "reference":
        return make_atari_env(BREAKOUT, 2, **kwargs)
    return MAKE[name](BREAKOUT, 2, wrapper_class=AtariWrapper, **kwargs)


@cache
def atari_stream() -> list[Any]:
    # 200 frames are 50 steps: some episodes end with a life, others by the limit.
    return stream(atari_helper("reference", 200), 110)


def check_atari(env: VecEnv) -> None:
    expected = atari_stream()
    seen = endings(expected)
    assert seen["terminated"] >= 2
    # For the monitor within, a lost life is not the end.
    assert seen["truncated"] == seen["monitored"] >= 2
    assert expected[0].shape == (2, 84, 84, 1)
    same(stream(env, 110), expected)


@with_atari
@every_kind
def test_atari_streams_equal_those_of_sb3(name: str, mode: AutoresetMode) -> None:
    check_atari(atari(name, mode, 200))


@with_atari
@pytest.mark.parametrize("name", MAKE)
def test_atari_streams_of_the_helper_equal_those_of_sb3(name: str) -> None:
    env = atari_helper(name, 200)
    assert env.env_is_wrapped(EpisodicLifeEnv) == [True, True]
    check_atari(env)


def stacked(env: VecEnv) -> VecEnv:
    return VecTransposeImage(VecFrameStack(env, n_stack=4))


@with_atari
def test_atari_evaluation_counts_games_and_not_lives() -> None:
    stack = VecFrameStack(atari_helper("reference", 200), n_stack=4)
    kwargs: dict[str, Any] = {"features_extractor_kwargs": {"features_dim": 8}}
    model = A2C("CnnPolicy", stack, seed=1, device="cpu", policy_kwargs=kwargs)
    assert is_vecenv_wrapped(model.get_env(), VecTransposeImage)
    stack.close()
    results = []
    for name in ("reference", *MAKE):
        torch.manual_seed(0)
        with closing(stacked(atari_helper(name, 200))) as env:
            env.seed(1)
            returns = evaluate_policy(
                model, env, 2, deterministic=False, return_episode_rewards=True
            )
        results.append(returns)
    same(results[1], results[0])
    same(results[2], results[0])
    assert results[0][1] == [200] * 2
