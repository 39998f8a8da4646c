"""A `VecEnv` over a source: the order of calls, seeds, options."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import sb3compat
from tests.envs import Identity, fns
from tests.lockstep import same
from tests.native import NativeEnv

SAME_STEP = AutoresetMode.SAME_STEP


def adapted(n: int = 2, **kwargs: Any) -> Any:
    return sb3compat.to_sb3(SyncVectorEnv(fns(n, **kwargs)))


class Drawing(gym.Env[Any, Any]):
    """Draws a random number in each step, and for the observation of each reset."""

    observation_space = spaces.Box(0, 1, (1,), np.float64)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self.np_random.random(1), {}

    def step(self, action: Any) -> Any:
        return self.np_random.random(1), 0.0, False, False, {}


@pytest.mark.parametrize("make", [lambda fns: SyncVectorEnv(fns), AsyncVectorEnv, None])
def test_wrong_actions_leave_the_environment_untouched(make: Any) -> None:
    make = make or (lambda fns: NativeEnv(fns, SAME_STEP))
    env, twin = (sb3compat.to_sb3(make(fns(3, lengths=(5,)))) for _ in range(2))
    same(env.reset(), twin.reset())
    for wrong in (np.zeros(2, int), np.zeros((3, 1), int), [0, 1], np.array([0.5, 0, 0]), "abc"):
        with pytest.raises(ValueError, match="actions"):
            env.step(wrong)
        same(env.step(np.zeros(3, int)), twin.step(np.zeros(3, int)))
    env.close()
    twin.close()


@pytest.mark.parametrize("cls", [SyncVectorEnv, AsyncVectorEnv])
def test_reset_cancels_a_pending_step(cls: Any) -> None:
    env, twin = (sb3compat.to_sb3(cls(fns(2, lengths=(2,)))) for _ in range(2))
    env.reset()
    twin.reset()
    env.step_async(np.ones(2, int))
    env.seed(3)
    obs = env.reset()
    assert [info["shared"] for info in env.reset_infos] == [0, 0]
    with pytest.raises(RuntimeError, match="step_async"):
        env.step_wait()
    twin.seed(3)
    same(obs, twin.reset())
    same(env.step(np.ones(2, int)), twin.step(np.ones(2, int)))
    env.close()
    twin.close()


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


def test_seeds_are_used_once_and_change_nothing_before() -> None:
    env = adapted(3)
    env.reset()
    assert env.seed(10) == [10, 11, 12]
    env.step(np.zeros(3, int))
    env.reset()
    assert [info["seed"] for info in env.reset_infos] == [10, 11, 12]
    env.reset()
    assert [info["seed"] for info in env.reset_infos] == [-1, -1, -1]


def test_custom_environment_gets_one_seed() -> None:
    class Noting(NativeEnv):
        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            self.noted = seed
            return super().reset(seed=seed, options=options)

    source = Noting(fns(3), SAME_STEP)
    env = sb3compat.to_sb3(source)
    env.seed(10)
    env.reset()
    assert source.noted == 10
    env.reset()
    assert source.noted is None


@pytest.mark.parametrize(
    "options",
    [None, {"x": 3}, ({"x": 1}, {"x": 2}), [None, {"x": 2}], (None, None), [{}, None], ({}, {})],
)
@pytest.mark.parametrize("cls", [SyncVectorEnv, AsyncVectorEnv])
def test_options_reach_the_rows_as_in_sb3(cls: Any, options: Any) -> None:
    common = pytest.importorskip("stable_baselines3.common.vec_env")
    makers = fns(infos="wild")
    env, reference = sb3compat.to_sb3(cls(makers)), common.DummyVecEnv(makers)
    for either in (env, reference):
        either.set_options(options)
    for _ in range(2):
        same(env.reset(), reference.reset())
        same(env.reset_infos, reference.reset_infos)
    env.close()


@pytest.mark.parametrize("seed", [[1, 2], 1.5, "3", np.arange(2)])
def test_seed_for_each_row_is_refused_and_says_what_is_meant(seed: Any) -> None:
    env = adapted(2)
    with pytest.raises(TypeError, match="seed of the first sub-environment"):
        env.seed(seed)
    assert env.seed(np.int64(3)) == [3, 4]
