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
from sb3compat._to_sb3.rows import received_info
from sb3compat.errors import ConversionError
from tests.envs import Returns, ScriptedEnv, script
from tests.parallel.teams import forked
from tests.to_sb3.driving import made, step


@pytest.mark.parametrize("name", ["sync", "async"])
@pytest.mark.parametrize("reward", ["much", [1.0, 2.0], {"r": 1}])
def test_rewards_that_are_not_one_number_are_refused(reward: Any, name: str) -> None:
    odd = gym.wrappers.TransformReward(ScriptedEnv(script()), lambda _: reward)
    env = sb3compat.to_sb3(made(name, [lambda: odd]))
    env.reset()
    got = rf"reward of row 0 to be one number.*\({type(reward).__name__}\)"
    with pytest.raises(sb3compat.ConversionError, match=got):
        step(env)


def test_received_info_is_a_plain_dict() -> None:
    given = {"x": [1]}
    assert received_info(given) is given
    for kind in (OrderedDict, MappingProxyType):
        own = received_info(kind(given))
        assert type(own) is dict
        assert own == given


@pytest.mark.parametrize("info", [None, [], 0, ["a"]])
@pytest.mark.parametrize("build", [lambda fns: sb3compat.to_sb3(SyncVectorEnv(fns)), forked])
def test_steps_whose_info_is_no_dict_are_refused(build: Any, info: Any) -> None:
    """`SyncVectorEnv` and `DummyVecEnv` fail there, too, by writing into it."""
    env = build([lambda: Returns(step=lambda *result: (*result[:4], info))])
    env.reset()
    with pytest.raises(ConversionError, match="Expected infos of sub-environments to be dicts"):
        env.step(np.zeros(1, int))
