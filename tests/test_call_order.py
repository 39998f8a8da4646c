"""Calls in the wrong order, and after close, and copies: which error refuses them."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorWrapper

import sb3compat
from sb3compat import to_gymnasium, to_sb3
from sb3compat.errors import CallOrderError
from tests.envs import Identity, fns
from tests.lockstep_back import subproc
from tests.to_sb3.test_faults import Failing, SeveralError
from tests.vec_wrappers import HandsOn

sb3: Any = pytest.importorskip("stable_baselines3.common.vec_env", reason="the VecEnvs are SB3's")

CARTPOLES = [lambda: gym.make("CartPole-v1")] * 2
ACTIONS = np.zeros(2, np.int64)
FAILING = [lambda: Failing(0)]


TO_SB3: dict[str, Callable[[], Any]] = {
    "sync": lambda: SyncVectorEnv(CARTPOLES),
    "async": lambda: AsyncVectorEnv(CARTPOLES),
    "wrapped sync": lambda: VectorWrapper(SyncVectorEnv(CARTPOLES)),
    "same step": lambda: SyncVectorEnv(CARTPOLES, autoreset_mode=AutoresetMode.SAME_STEP),
    "native": lambda: gym.make_vec("CartPole-v1", 2, vectorization_mode="vector_entry_point"),
    "parallel": lambda: sb3compat.ParallelVecEnv(CARTPOLES, 2, start_method="fork"),
}
IN_WORKERS = ("async", "parallel")


@pytest.mark.parametrize(
    "make",
    [
        lambda: sb3compat.to_sb3(SyncVectorEnv(FAILING)),
        lambda: sb3compat.to_gymnasium(sb3.DummyVecEnv(FAILING)),
        lambda: sb3compat.ParallelVecEnv(FAILING, workers=1, start_method="fork"),
    ],
    ids=["to_sb3", "to_gymnasium", "ParallelVecEnv"],
)
def test_step_after_one_that_failed_asks_for_a_reset_in_the_words_of_the_caller(
    make: Callable[[], Any],
) -> None:
    env = make()
    env.reset()
    env.step(np.zeros(1, np.int64))
    with pytest.raises(SeveralError):
        env.step(np.zeros(1, np.int64))
    with pytest.raises(CallOrderError, match="an episode may have ended") as caught:
        env.step(np.zeros(1, np.int64))
    assert "step_async" not in str(caught.value)
    assert str(caught.value).partition("Call ")[2].startswith("env.reset()")
    env.reset()
    env.step(np.zeros(1, np.int64))
    env.close()


@pytest.mark.parametrize("name", TO_SB3)
def test_calls_of_a_vec_env_in_the_wrong_order_or_after_close_are_refused(name: str) -> None:
    source = TO_SB3[name]()
    env = sb3compat.to_sb3(source)
    with pytest.raises(CallOrderError, match=r"Expected reset\(\) before the first step") as caught:
        env.step(ACTIONS)
    assert str(caught.value).endswith("Call env.reset() first.")
    env.reset()
    with pytest.raises(CallOrderError, match="step_async"):
        env.step_wait()
    env.step_async(ACTIONS)
    with pytest.raises(CallOrderError, match="step_wait"):
        env.step_async(ACTIONS)
    if name in IN_WORKERS:
        with pytest.raises(CallOrderError, match="step_wait"):
            env.get_attr("spec")
    env.reset()  # which cancels the step
    with pytest.raises(CallOrderError, match="step_async"):
        env.step_wait()
    env.step(ACTIONS)
    assert len(env.get_attr("spec")) == 2
    env.close()
    for call in (env.reset, lambda: env.step(ACTIONS), lambda: env.get_attr("spec")):
        with pytest.raises(sb3compat.ClosedError, match="was closed"):
            call()
    # The native CartPole takes no note of it.
    if getattr(source.unwrapped, "closed", False):
        adapt = sb3compat.to_gymnasium if source is env else sb3compat.to_sb3
        with pytest.raises(sb3compat.ClosedError, match="was closed"):
            adapt(source)


# Copies of an environment with workers, or with wrappers of SB3, in both directions.


DUPLICATES = (copy.copy, copy.deepcopy, pickle.dumps, cloudpickle.dumps)
NOT_COPIED: dict[str, Callable[[], Any]] = {
    # The copy of a `VecNormalize` has no environment; others hold what cannot be pickled.
    "normalized": lambda: to_gymnasium(sb3.VecNormalize(sb3.DummyVecEnv(fns()))),
    "monitored": lambda: to_gymnasium(sb3.VecMonitor(sb3.DummyVecEnv(fns()))),
    "async": lambda: to_sb3(AsyncVectorEnv(fns())),
    "wrapped async": lambda: to_sb3(Identity(AsyncVectorEnv(fns()))),
    "subproc": lambda: to_gymnasium(subproc(fns())),
    "wrapped subproc": lambda: to_gymnasium(HandsOn(subproc(fns()))),
    "async and back": lambda: to_gymnasium(HandsOn(to_sb3(AsyncVectorEnv(fns())))),
}


@pytest.mark.parametrize("name", NOT_COPIED)
def test_environment_with_workers_or_wrappers_of_sb3_cannot_be_copied(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """A copy's pipes, once dropped, would close those of the original."""
    env = NOT_COPIED[name]()
    env.reset()
    # A shallow copy of the last one shares the environment inside.
    for duplicate in DUPLICATES[name == "async and back" :]:
        with pytest.raises(TypeError, match="without SB3's wrappers, and without worker"):
            duplicate(env)
    gc.collect()
    assert len(env.step(np.zeros(2, int))[0]) == 2
    env.close()
    assert capfd.readouterr().err == ""
