from __future__ import annotations

import subprocess
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

import sb3compat
from sb3compat._to_sb3.partial_reset import partial_reset_of
from tests.envs import Identity, fns
from tests.native import NativeEnv, UnknownEnv, reset_native


def test_function_of_the_nearest_class_is_used() -> None:
    class Derived(NativeEnv):
        pass

    class Own(NativeEnv):
        pass

    def other(env: Any, mask: Any, *, seed: Any = None, options: Any = None) -> Any:
        return reset_native(env, mask, seed=seed, options=options)

    sb3compat.register_partial_reset(Own, other)
    mode = AutoresetMode.NEXT_STEP
    assert partial_reset_of(Derived(fns(), mode)) is reset_native
    assert partial_reset_of(Own(fns(), mode)) is other
    assert partial_reset_of(UnknownEnv(fns(), mode)) is None
    assert partial_reset_of(SyncVectorEnv(fns())) is sb3compat.reset_with_mask


def test_registration_works_as_decorator_and_as_function() -> None:
    class One(UnknownEnv):
        pass

    @sb3compat.register_partial_reset(One)
    def reset_one(env: Any, mask: Any, *, seed: Any = None, options: Any = None) -> Any:
        return env.reset_rows(mask, seed, options)

    assert partial_reset_of(One(fns(), AutoresetMode.NEXT_STEP)) is reset_one
    sb3compat.register_partial_reset(One, sb3compat.reset_with_mask)
    env = sb3compat.to_sb3(One(fns(lengths=(2, 3)), AutoresetMode.NEXT_STEP))
    env.reset()
    ends = [env.step(np.zeros(2, int))[2].tolist() for _ in range(6)]
    assert ends == [
        [False, False], [False, True], [True, False], [False, False], [True, True], [False, False]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cls", "function", "message"),
    [
        ("CartPole-v1", None, "subclass of gymnasium.vector.VectorEnv"),
        (gym.Env, None, "subclass of gymnasium.vector.VectorEnv"),
        (Identity, None, "wrapper"),
        (UnknownEnv, 3, "Expected a function, got function=3"),
    ],
)
def test_wrong_registrations_are_refused(cls: Any, function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        sb3compat.register_partial_reset(cls, function)


def test_native_cartpole_resets_only_the_rows_under_the_mask() -> None:
    env: Any = gym.make_vec("CartPole-v1", num_envs=3)
    before, _ = env.reset(seed=1)
    env.unwrapped.prev_done[:] = [True, False, True]
    env.unwrapped.steps[:] = 7
    reset = partial_reset_of(env.unwrapped)
    assert reset is not None
    mask = np.array([True, False, False])
    obs, infos = reset(env.unwrapped, mask)
    assert infos == {}
    assert obs.dtype == np.float32
    assert not np.array_equal(obs[0], before[0])
    np.testing.assert_array_equal(obs[1:], before[1:])
    assert env.unwrapped.prev_done.tolist() == [False, False, True]
    assert env.unwrapped.steps.tolist() == [0, 7, 7]
    again = [reset(env.unwrapped, mask, seed=5)[0] for _ in range(2)]
    np.testing.assert_array_equal(*again)


@pytest.mark.parametrize("wrapped", [False, True])
def test_no_autoreset_lingers_without_shared_memory(wrapped: bool) -> None:
    # The upstream bug that tap.py goes around: without it, row 0 would be reset once more.
    source: VectorEnv[Any, Any, Any] = AsyncVectorEnv(fns(lengths=(2, 4)), shared_memory=False)
    env = sb3compat.to_sb3(Identity(source) if wrapped else source)
    env.reset()
    resets = []
    for _ in range(8):
        env.step(np.zeros(2, int))
        resets.append([info["resets"] for info in env.reset_infos])
    assert resets[-1] == [3, 4]
    env.close()


@pytest.mark.parametrize("shared_memory", [True, False])
@pytest.mark.parametrize("wrapped", [False, True])
def test_reset_clears_an_autoreset_pending_before_adapting(
    wrapped: bool, shared_memory: bool
) -> None:
    source: VectorEnv[Any, Any, Any] = AsyncVectorEnv(fns(2), shared_memory=shared_memory)
    source.reset()
    for _ in range(3):
        ended = source.step(np.zeros(2, int))[2]
    assert ended.all()
    env = sb3compat.to_sb3(Identity(source) if wrapped else source)
    env.seed(3)
    env.reset()
    for time in (1, 2):
        infos = env.step(np.zeros(2, int))[3]
        assert [info["shared"] for info in infos] == [time, time]
    env.close()


def test_wrapped_sync_env_with_a_pending_autoreset_takes_options() -> None:
    source = SyncVectorEnv(fns(2))
    source.reset()
    for _ in range(3):
        source.step(np.zeros(2, int))
    env = sb3compat.to_sb3(Identity(source))
    env.set_options([{"x": 1}, {"x": 2}])
    env.reset()
    assert [info["option"] for info in env.reset_infos] == [1, 2]
    assert [info["shared"] for info in env.step(np.zeros(2, int))[3]] == [1, 1]


def test_registration_before_the_backend_is_imported_stays() -> None:
    script = """
import gymnasium as gym, numpy as np, sb3compat
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from sb3compat._to_sb3.partial_reset import partial_reset_of

def own(env, mask, *, seed=None, options=None):
    raise AssertionError("not called here")

sb3compat.register_partial_reset(CartPoleVectorEnv, own)
env = gym.make_vec("CartPole-v1", 2, vectorization_mode="vector_entry_point")
sb3compat.to_sb3(env)
assert partial_reset_of(env.unwrapped) is own
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
