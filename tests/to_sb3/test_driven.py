"""A `VecEnv` over a source: the order of calls, seeds, options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

import sb3compat
from tests.envs import Drawing, Identity, fns
from tests.lockstep import same
from tests.native import NativeEnv
from tests.parallel.teams import forked
from tests.to_sb3.driving import SAME_STEP, SOURCES, made, step

# Those that are not made of single environments by Gymnasium.
OTHERS: dict[str, Callable[[Any], Any]] = {
    "native": lambda fns: NativeEnv(fns, SAME_STEP),
    "parallel": lambda fns: forked(fns, 2),
}


@pytest.mark.parametrize("name", [*SOURCES, *OTHERS])
def test_wrong_actions_and_cancelled_steps_leave_the_environment_untouched(name: str) -> None:
    env, twin = (
        sb3compat.to_sb3(OTHERS[name](rows) if name in OTHERS else made(name, rows))
        for rows in [fns(3, lengths=(5,))] * 2
    )
    same(env.reset(), twin.reset())
    for wrong in (np.zeros(2, int), np.zeros((3, 1), int), [0, 1], np.array([0.5, 0, 0]), "abc"):
        with pytest.raises(ValueError, match="actions"):
            env.step(wrong)
        same(step(env), step(twin))
    env.step_async(np.ones(3, int))
    with pytest.raises(RuntimeError, match=r"step_wait\(\).*reset\(\)"):
        step(env)
    same(env.step_wait(), step(twin, 1))
    env.step_async(np.ones(3, int))
    for either in (env, twin):
        either.seed(3)
    same(env.reset(), twin.reset())
    with pytest.raises(RuntimeError, match="step_async"):
        env.step_wait()
    same(step(env), step(twin))


def test_cancelled_step_is_executed_by_workers_as_in_sb3() -> None:
    sb3 = pytest.importorskip("stable_baselines3.common.vec_env")

    def after_a_cancelled_step(env: Any, cancel: bool = True) -> Any:
        env.seed(3)
        env.reset()
        if cancel:
            env.step_async(np.zeros(1, int))
        try:
            return env.reset()
        finally:
            env.close()

    made = [Drawing]
    untouched = after_a_cancelled_step(sb3.DummyVecEnv(made), cancel=False)
    same(after_a_cancelled_step(sb3.DummyVecEnv(made)), untouched)
    same(after_a_cancelled_step(sb3compat.to_sb3(SyncVectorEnv(made))), untouched)
    same(after_a_cancelled_step(sb3compat.to_sb3(Identity(AsyncVectorEnv(made)))), untouched)
    stepped = after_a_cancelled_step(sb3compat.to_sb3(AsyncVectorEnv(made)))
    assert not np.array_equal(stepped, untouched)


@pytest.mark.parametrize("seed", [[1, 2], 1.5, "3", np.arange(2)])
def test_seed_for_each_row_is_refused_and_says_what_is_meant(seed: Any) -> None:
    env = sb3compat.to_sb3(made("sync", fns()))
    with pytest.raises(TypeError, match="seed of the first row"):
        env.seed(seed)
    assert env.seed(np.int8(127)) == [127, 128]
