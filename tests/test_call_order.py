"""Calls in the wrong order raise `CallOrderError`, and calls after close `ClosedError`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorWrapper

import sb3compat
from sb3compat.errors import CallOrderError
from tests.envs import ScriptedEnv, fns, script
from tests.lockstep_back import NAMES, SOURCES, monitored

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


@pytest.mark.parametrize("build", SOURCES, ids=NAMES)
@pytest.mark.parametrize("mode", AutoresetMode)
def test_vector_env_needs_a_reset_of_all_rows_first(build: Any, mode: AutoresetMode) -> None:
    """Also where the VecEnv was reset before: what its rows have returned is not known."""
    if build is monitored and mode == AutoresetMode.NEXT_STEP:
        return
    vec_env = build(fns(infos="none"))
    vec_env.reset()
    envs: Any = sb3compat.to_gymnasium(vec_env, autoreset_mode=mode)
    uses: list[Any] = [
        lambda: envs.step(ACTIONS),
        lambda: envs.reset(options={"reset_mask": np.array([True, False])}),
    ]
    for use in uses:
        for error in (CallOrderError, RuntimeError, ResetNeeded):
            with pytest.raises(error, match=r"Expected reset\(\) before the first step"):
                use()
    assert envs.reset()[1]["resets"].tolist() == [2, 2]
    envs.step(ACTIONS)
    envs.close()


class Crashes(ScriptedEnv):
    def step(self, action: Any) -> Any:
        raise RuntimeError("the simulator has crashed")


def test_other_errors_of_the_first_step_keep_their_type() -> None:
    env = sb3compat.to_sb3(SyncVectorEnv([lambda: Crashes(script())]))
    env.env.reset()  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match="the simulator has crashed") as caught:
        env.step([env.action_space.sample()])
    assert type(caught.value) is RuntimeError


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
