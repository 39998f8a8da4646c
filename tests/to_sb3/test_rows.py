from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import AlreadyPendingCallError
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

import sb3compat
from sb3compat._convert.observations import Observations
from sb3compat._convert.repeats import RepeatWatch
from tests.envs import Identity, MakeEnv, ScriptedEnv, script

MODES = list(AutoresetMode)


def test_environment_with_a_pending_call_is_refused() -> None:
    source = AsyncVectorEnv([MakeEnv(script(), 0)])
    source.reset_async()
    with pytest.raises(RuntimeError, match="pending 'reset'"):
        sb3compat.to_sb3(source)
    source.reset_wait()
    env = sb3compat.to_sb3(source)
    env.reset()
    env.step_async(np.zeros(1, int))
    with pytest.raises(AlreadyPendingCallError):  # the environment itself knows, too
        source.step(np.zeros(1, int))
    env.close()


def test_close_works_with_a_pending_step() -> None:
    source = AsyncVectorEnv([MakeEnv(script(), i) for i in range(2)])
    env = sb3compat.to_sb3(source)
    env.reset()
    env.step_async(np.zeros(2, int))
    env.close()
    assert not any(process.is_alive() for process in source.processes)


def test_integers_that_repeat_by_chance_do_not_warn() -> None:
    observations = Observations(spaces.Box(0, 9, (2,), np.int8), 1)
    watch = RepeatWatch()
    batch = [np.array([[1, 2]], np.int8)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watch.note(0, observations, np.array([1, 3], np.int8), batch)
        for _ in range(20):
            watch.note(0, observations, np.array([1, 2], np.int8), batch)


def test_pending_step_of_the_user_is_refused() -> None:
    source = AsyncVectorEnv([MakeEnv(script(), 0)])
    env = sb3compat.to_sb3(source)
    env.reset()
    source.step_async(np.zeros(1, int))
    for use in (lambda: env.step(np.zeros(1, int)), lambda: env.get_attr("row"), env.reset):
        with pytest.raises(RuntimeError, match="pending 'step'"):
            use()
    source.step_wait()
    env.reset()
    env.step(np.zeros(1, int))
    env.close()


@pytest.mark.parametrize("mode", MODES)
def test_wrong_shape_is_an_error_without_and_with_shared_memory(mode: AutoresetMode) -> None:
    class Wrong(ScriptedEnv):
        def step(self, action: Any) -> Any:
            obs, *rest = super().step(action)
            return obs[:2], *rest

    env = sb3compat.to_sb3(
        AsyncVectorEnv([lambda: Wrong(script())], shared_memory=False, autoreset_mode=mode)
    )
    env.reset()
    with pytest.raises(sb3compat.ConversionError, match=r"shape \(3,\)"):
        env.step(np.zeros(1, int))
    env.reset()
    env.close()


def test_timeout_without_effect_is_refused() -> None:
    source = AsyncVectorEnv([MakeEnv(script(), 0)])
    with pytest.raises(ValueError, match="timeout=None"):
        sb3compat.to_sb3(Identity(source), timeout=3)
    source.close()


class OwnInfos(AsyncVectorEnv):
    """A subclass, which is driven as a whole."""

    def _add_info(self, *args: Any) -> Any:
        return super()._add_info(*args)


@pytest.mark.parametrize("cls", [AsyncVectorEnv, OwnInfos])
def test_step_async_starts_the_step(cls: Any) -> None:
    source = cls([MakeEnv(script(), i) for i in range(2)])
    env = sb3compat.to_sb3(source)
    env.reset()
    env.step_async(np.zeros(2, int))
    assert all(pipe.poll(30) for pipe in source.parent_pipes)  # answers come before step_wait
    env.reset()  # drops that step
    env.step_async(np.zeros(2, int))
    env.step_wait()
    env.close()


def test_step_through_a_wrapper_starts_in_step_wait() -> None:
    source = AsyncVectorEnv([MakeEnv(script(), i) for i in range(2)])
    env = sb3compat.to_sb3(Identity(source))
    env.reset()
    env.step_async(np.zeros(2, int))
    assert env.get_attr("row") == [0, 1]  # nothing is under way yet
    env.step_wait()
    env.close()
