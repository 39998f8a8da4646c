"""Natively vectorized environments from `make_vec_env`: only on request, and when they fit."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import sb3compat
from tests import registered
from tests.envs import fns
from tests.native import NativeEnv, UnknownEnv


def base(env: Any) -> Any:
    return env.unwrapped.env.unwrapped


def class_of(env: Any) -> str:
    return type(base(env)).__name__


@pytest.mark.parametrize(
    "mode", ["native", "vector_entry_point", gym.VectorizeMode.VECTOR_ENTRY_POINT, "fastest"]
)
def test_native_vectorization_is_taken_on_request(mode: Any) -> None:
    for kwargs in (
        {},
        {"disable_env_checker": True},
        {"max_episode_steps": None},
        {"max_episode_steps": 7},
        {"sutton_barto_reward": True},
    ):
        env = sb3compat.make_vec_env(
            "CartPole-v1", 4, seed=1, env_kwargs=kwargs, vectorization_mode=mode
        )
        assert class_of(env) == "CartPoleVectorEnv"
        assert base(env).max_episode_steps == (kwargs.get("max_episode_steps") or 500)
        env.reset()
        seen = [i for _ in range(40) for i in env.step(np.zeros(4, int))[3]]
        assert any("episode" in info for info in seen)


@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        ("Acrobot-v1", {}),
        (registered.scripted, {}),
        ("CartPole-v1", {"wrapper_class": gym.wrappers.OrderEnforcing}),
        ("CartPole-v1", {"vec_env_kwargs": {"copy": False}}),
        ("CartPole-v1", {"monitor_kwargs": {"allow_early_resets": False}}),
        ("CartPole-v1", {"env_kwargs": {"max_episode_steps": -1}}),
        ("Wrapped-v0", {}),
    ],
)
def test_fastest_is_sync_where_native_does_not_fit(env_id: Any, kwargs: dict[str, Any]) -> None:
    env = sb3compat.make_vec_env(env_id, 2, vectorization_mode="fastest", **kwargs)
    assert class_of(env) == "SyncVectorEnv"
    env.close()


def test_fastest_has_the_spaces_of_the_single_environment() -> None:
    """Ale-py's own vector environment scales and stacks its images."""
    gym.register_envs(pytest.importorskip("ale_py", reason="has such an environment"))
    single = gym.make("ALE/Pong-v5").observation_space
    for mode, space in (("fastest", single.shape), ("native", (4, 84, 84))):
        env = sb3compat.make_vec_env("ALE/Pong-v5", 1, vectorization_mode=mode)
        assert env.observation_space.shape == space
        env.close()


@pytest.mark.parametrize("mode", [None, "native", "fastest"])
def test_id_with_a_vector_entry_point_only_is_native(mode: Any) -> None:
    for env_id in (
        "tests.registered:NativeOnly-v0",
        "tests.registered:NativeOnly",
        "NativeOnly-v0",
        gym.spec("NativeOnly-v0"),
    ):
        env = sb3compat.make_vec_env(env_id, 3, seed=0, vectorization_mode=mode)
        assert isinstance(base(env), NativeEnv)
        assert env.reset().shape == (3, 3)


def test_sync_asks_for_single_environments() -> None:
    with pytest.raises(gym.error.Error, match="entry_point is not specified"):
        sb3compat.make_vec_env("NativeOnly-v0", vectorization_mode="sync")


def test_unlimited_episodes_are_refused_natively() -> None:
    """Gymnasium's CartPole would truncate in each step."""
    with pytest.raises(ValueError, match=r"max_episode_steps=-1.*vectorization_mode='sync'"):
        sb3compat.make_vec_env(
            "CartPole-v1", env_kwargs={"max_episode_steps": -1}, vectorization_mode="native"
        )


def test_mode_that_is_not_declared_is_an_argument() -> None:
    gym.spec("Undeclared-v0").kwargs["mode"] = None
    make = partial(sb3compat.make_vec_env, "Undeclared-v0", 2)
    with pytest.raises(sb3compat.AutoresetModeError, match=r"autoreset_mode='NextStep' \|"):
        make(vectorization_mode="native")
    assert isinstance(base(make(vectorization_mode="fastest")), SyncVectorEnv)
    for mode in ("native", "fastest"):
        env = make(vectorization_mode=mode, autoreset_mode="NextStep")
        assert isinstance(base(env), NativeEnv)
        assert len(env.reset()) == 2


def test_arguments_of_single_environments_alone_do_not_reach_a_native_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def native(num_envs: int, render_mode: str, **kwargs: Any) -> UnknownEnv:
        assert kwargs == {"before": 1, "later": 2}
        return UnknownEnv(fns(num_envs), AutoresetMode.SAME_STEP)

    spec = gym.envs.registration.EnvSpec("Takes-v0", vector_entry_point=native)
    monkeypatch.setitem(gym.registry, "Takes-v0", spec)
    kwargs = {"before": 1, "disable_env_checker": True, "later": 2}
    env = sb3compat.make_vec_env("Takes-v0", 2, env_kwargs=kwargs, vectorization_mode="native")
    assert class_of(env) == "UnknownEnv"


def fails(**_: Any) -> Any:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("single", "declared", "how", "error"),
    [
        (fails, AutoresetMode.SAME_STEP, "fastest", ZeroDivisionError),
        (None, None, "native", sb3compat.AutoresetModeError),
    ],
)
def test_native_environment_that_cannot_be_used_is_closed(
    single: Any, declared: Any, how: str, error: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[UnknownEnv] = []

    def native(num_envs: int, **_: Any) -> UnknownEnv:
        made.append(UnknownEnv(fns(num_envs), declared))
        return made[-1]

    spec = gym.envs.registration.EnvSpec("Fails-v0", single, vector_entry_point=native)
    monkeypatch.setitem(gym.registry, "Fails-v0", spec)
    with pytest.raises(error):
        sb3compat.make_vec_env("Fails-v0", 2, vectorization_mode=how)
    assert [env.closed for env in made] == [True]
