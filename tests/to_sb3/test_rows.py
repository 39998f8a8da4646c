"""What both row-by-row sources do with the rewards, infos and arguments of one row."""

from __future__ import annotations

from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import sb3compat
from sb3compat._convert.arrays import copy_dict
from sb3compat._to_sb3.rows import (
    received_info,
    refuse_pending,
    reset_kwargs,
    set_reward,
    step_info,
)
from sb3compat.errors import CallOrderError
from tests.envs import ScriptedEnv, fns, script
from tests.lockstep import same
from tests.native import NativeEnv


def test_reward_that_is_no_number_is_refused() -> None:
    class Pair(gym.RewardWrapper[Any, Any]):
        def reward(self, reward: Any) -> Any:
            return np.array([reward, reward])

    env = sb3compat.to_sb3(SyncVectorEnv([lambda: Pair(ScriptedEnv(script()))]))
    env.reset()
    with pytest.raises(sb3compat.ConversionError, match="reward of row 0 to be one number"):
        env.step(np.array([0]))


def test_reset_gets_the_arguments_that_dummy_vec_env_passes() -> None:
    common = pytest.importorskip("stable_baselines3.common.vec_env")
    passed: list[Any] = []

    class Noting(ScriptedEnv):
        def reset(self, **kwargs: Any) -> Any:
            passed.append(kwargs)
            return super().reset(**kwargs)

    env = common.DummyVecEnv([lambda: Noting(script())])
    expected: list[tuple[int | None, dict[str, Any]]] = [(None, {}), (5, {}), (None, {"x": 1})]
    for seed, options in expected:
        if seed is not None:
            env.seed(seed)
        env.set_options(options)
        env.reset()
    same([reset_kwargs(seed, options) for seed, options in expected], passed)


def test_info_of_a_step_has_the_keys_of_sb3_in_place_of_its_own() -> None:
    for truncated in (True, False):
        given = {"x": [1], "terminal_observation": "no", "TimeLimit.truncated": "no"}
        info = step_info(given, truncated=truncated)
        assert info is given
        assert info == {"x": [1], "TimeLimit.truncated": truncated}


def test_received_info_is_a_plain_dict() -> None:
    given = {"x": [1]}
    assert received_info(given) is given
    for kind in (OrderedDict, MappingProxyType):
        own = received_info(kind(given))  # type: ignore[operator]
        assert type(own) is dict
        assert own == given


def test_info_that_contains_itself_is_copied_as_dummy_vec_env_does() -> None:
    given: dict[str, Any] = {"list": []}
    given["self"] = given
    given["list"].append(given)
    own = step_info(copy_dict(given), truncated=True)
    assert own is not given
    assert own["self"] is own
    assert own["list"][0] is own
    assert given.keys() == {"list", "self"}


def test_pending_autoresets_are_refused_or_their_rows_not_known() -> None:
    refuse_pending(NativeEnv(fns(), None), np.zeros(2, bool))
    for pending, text in ((np.array([False, True]), r"rows \[1\]"), (None, "cannot be known")):
        with pytest.raises(CallOrderError, match=rf"Expected reset\(\) before.*{text}"):
            refuse_pending(NativeEnv(fns(), None), pending)


def test_rewards_that_are_numbers_are_rounded_to_float32() -> None:
    rewards = np.empty(4, np.float32)
    for row, reward in enumerate((0.1, True, np.array(3), np.float64(1 / 3))):
        set_reward(rewards, row, reward)
    same(rewards, np.array([0.1, 1, 3, 1 / 3], np.float32))


@pytest.mark.parametrize("reward", ["much", [1.0, 2.0], np.ones(2), {"r": 1}])
def test_rewards_that_are_not_one_number_are_refused(reward: Any) -> None:
    got = rf"reward of row 1 to be one number.*\({type(reward).__name__}\)"
    with pytest.raises(sb3compat.ConversionError, match=got):
        set_reward(np.empty(2, np.float32), 1, reward)
