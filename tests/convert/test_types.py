"""The adapters are known by the protocols that their classes derive from."""

from __future__ import annotations

import gymnasium as gym
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper

import sb3compat
from sb3compat._convert.types import holds_vec_env, holds_vector_env

vec_env = pytest.importorskip("stable_baselines3.common.vec_env", reason="the wrappers are SB3's")

FUNCTIONS = [lambda: gym.make("CartPole-v1")]


def test_adapters_are_known_and_wrappers_around_them_are_not() -> None:
    env = sb3compat.to_sb3(SyncVectorEnv(FUNCTIONS))
    envs = sb3compat.to_gymnasium(vec_env.DummyVecEnv(FUNCTIONS))
    wrapped = vec_env.VecMonitor(env)
    assert wrapped.original  # handed on by the wrapper's `__getattr__`
    assert list(map(holds_vector_env, (env, wrapped, envs))) == [True, False, False]
    assert list(map(holds_vec_env, (envs, VectorWrapper(envs), env))) == [True, False, False]


class Own(sb3compat.VecEnvAdapter):
    pass


def test_a_subclass_of_the_adapter_is_not_unwrapped() -> None:
    env = Own(SyncVectorEnv(FUNCTIONS, autoreset_mode=AutoresetMode.SAME_STEP))
    assert holds_vector_env(env)
    assert sb3compat.to_gymnasium(env) is not env.env
