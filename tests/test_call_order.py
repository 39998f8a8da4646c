"""Calls in the wrong order raise `CallOrderError`, and calls after close `ClosedError`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorWrapper

import sb3compat
from sb3compat.errors import CallOrderError

pytest.importorskip("stable_baselines3", reason="the VecEnvs are SB3's")

CARTPOLES = [lambda: gym.make("CartPole-v1")] * 2
ACTIONS = np.zeros(2, np.int64)


TO_SB3: dict[str, Callable[[], Any]] = {
    "sync": lambda: SyncVectorEnv(CARTPOLES),
    "async": lambda: AsyncVectorEnv(CARTPOLES),
    "wrapped sync": lambda: VectorWrapper(SyncVectorEnv(CARTPOLES)),
    "same step": lambda: SyncVectorEnv(CARTPOLES, autoreset_mode=AutoresetMode.SAME_STEP),
    "native": lambda: gym.make_vec("CartPole-v1", 2, vectorization_mode="vector_entry_point"),
}


@pytest.mark.parametrize("name", TO_SB3)
def test_first_step_of_vec_env_needs_a_reset(name: str) -> None:
    env = sb3compat.to_sb3(TO_SB3[name]())
    with pytest.raises(CallOrderError, match=r"Expected reset\(\) before the first step"):
        env.step(ACTIONS)
    env.close()


@pytest.mark.parametrize("name", TO_SB3)
def test_step_async_and_step_wait_must_alternate(name: str) -> None:
    env = sb3compat.to_sb3(TO_SB3[name]())
    env.reset()
    with pytest.raises(CallOrderError, match="step_async"):
        env.step_wait()
    env.step_async(ACTIONS)
    with pytest.raises(CallOrderError, match="step_wait"):
        env.step_async(ACTIONS)
    env.close()


@pytest.mark.parametrize("name", TO_SB3)
def test_closed_environment_refuses_every_call_of_vec_env(name: str) -> None:
    source = TO_SB3[name]()
    env = sb3compat.to_sb3(source)
    env.reset()
    env.close()
    for call in (env.reset, lambda: env.step(ACTIONS), lambda: env.get_attr("spec")):
        with pytest.raises(sb3compat.ClosedError, match="was closed"):
            call()
    if source.unwrapped.closed:  # the native CartPole takes no note of it
        with pytest.raises(sb3compat.ClosedError, match="was closed"):
            sb3compat.to_sb3(source)
