"""A bare `SyncVectorEnv`, driven row by row."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import sb3compat
from sb3compat._convert.actions import Actions
from sb3compat._convert.observations import Observations
from sb3compat._to_sb3.rows_sync import SyncRows
from tests.envs import MakeEnv, ScriptedEnv, fns, script
from tests.lockstep import same
from tests.to_sb3.driving import step

MODES = list(AutoresetMode)


def rows_of(env: Any, *, copy: bool = True) -> SyncRows:
    observations = Observations(env.single_observation_space, env.num_envs)
    return SyncRows(env, observations, Actions(env.single_action_space, env.num_envs), copy=copy)


@pytest.mark.parametrize("mode", MODES)
def test_environment_can_be_driven_directly_afterwards(mode: AutoresetMode) -> None:
    """No autoreset is pending, and a masked reset keeps the observations of the other rows."""
    source = SyncVectorEnv(fns(2, lengths=(2, 3)), autoreset_mode=mode)
    env = sb3compat.to_sb3(source)
    env.reset()
    dones = np.zeros(2, bool)
    while not dones.any():
        obs, _, dones, _ = step(env)
    resets = [env.unwrapped._resets for env in source.envs]  # type: ignore[attr-defined]
    after, _ = source.reset(options={"reset_mask": ~dones})
    same(after[dones], obs[dones])
    assert not np.array_equal(after[~dones], obs[~dones])
    _, rewards, *_ = source.step(np.zeros(2, int))
    assert np.all(rewards >= 0.1)  # 0 for a row that has been reset instead
    expected = [count + (not done) for count, done in zip(resets, dones, strict=True)]
    assert [env.unwrapped._resets for env in source.envs] == expected  # type: ignore[attr-defined]


def test_pending_autoresets_are_forgotten_by_a_reset() -> None:
    source = SyncVectorEnv(fns(2, lengths=(1,)))
    source.reset()
    assert source.step(np.zeros(2, int))[2].all()
    env = sb3compat.to_sb3(source)
    env.reset()
    source.step(np.zeros(2, int))
    assert [env.unwrapped._time for env in source.envs] == [1, 1]  # type: ignore[attr-defined]


def test_infos_that_gymnasium_would_change_arrive_unchanged() -> None:
    values = [1, 1.75, np.zeros(2), np.zeros(3), "text", None]

    class Telling(ScriptedEnv):
        def step(self, action: Any) -> Any:
            return *super().step(action)[:4], {"x": values[self.row]}

    made = [lambda row=row: Telling(script(), row) for row in range(len(values))]
    env = sb3compat.to_sb3(SyncVectorEnv(made))
    env.reset()
    same([info["x"] for info in step(env)[3]], values)


def test_last_observation_is_copied_before_the_reset_overwrites_it() -> None:
    for mode in MODES:
        reusing, twin = (
            sb3compat.to_sb3(SyncVectorEnv(fns(2, lengths=(1,), reuse=reuse), autoreset_mode=mode))
            for reuse in (True, False)
        )
        for env in (reusing, twin):
            env.reset()
        (*_, ours), (*_, expected) = step(reusing), step(twin)
        for info, reference in zip(ours, expected, strict=True):
            same(info["terminal_observation"], reference["terminal_observation"])


def test_steps_without_copy_write_into_one_batch() -> None:
    source = SyncVectorEnv(fns())
    for copy in (True, False):
        rows = rows_of(source, copy=copy)
        (first,), _ = rows.reset([None, None], [{}, {}])
        before = first.copy()
        rows.send([np.zeros(2, np.int64)])
        (second,) = rows.receive().observations
        assert np.shares_memory(first, second) != copy
        assert np.array_equal(first, before) == copy


def test_cancelled_step_is_never_taken() -> None:
    source = SyncVectorEnv([MakeEnv(script(), 0)])
    rows = rows_of(source)
    rows.reset([None], [{}])
    rows.send([np.zeros(1, np.int64)])
    rows.cancel()
    rows.send([np.ones(1, np.int64)])
    assert rows.receive().infos[0]["action"] == 1
    assert source.envs[0].unwrapped._time == 1  # type: ignore[attr-defined]


def test_observations_that_are_cut_as_by_dummy_vec_env_are_warned_of_once() -> None:
    class Halved(gym.ObservationWrapper[Any, Any, Any]):
        def observation(self, observation: Any) -> Any:
            return observation / 2 + 0.25

    made = [lambda: Halved(ScriptedEnv(script(observation_space=spaces.Box(0, 9, (2,), np.uint8))))]
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    reference, ours = vec_env.DummyVecEnv(made), sb3compat.to_sb3(SyncVectorEnv(made))
    with pytest.warns(UserWarning, match=r"rows \[0\] have values .* as DummyVecEnv cuts them"):
        first = ours.reset()
    same(first, reference.reset())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(ours.reset(), reference.reset())


@pytest.mark.parametrize("copy", [True, False])
def test_values_of_infos_are_shared_only_without_a_copy(copy: bool) -> None:
    held = [1]

    class Holding(ScriptedEnv):
        def step(self, action: Any) -> Any:
            return *super().step(action)[:4], {"held": held}

    env = sb3compat.to_sb3(SyncVectorEnv([lambda: Holding(script())]), copy=copy)
    env.reset()
    info = step(env)[3][0]
    assert info["held"] == held
    assert (info["held"] is held) != copy
