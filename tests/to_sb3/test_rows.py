"""What both row-by-row sources do with the rewards, infos and arguments of one row."""

from __future__ import annotations

from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import gymnasium as gym
import pytest

import sb3compat
from sb3compat._to_sb3.rows import received_info
from tests.envs import ScriptedEnv, script
from tests.lockstep import same
from tests.to_sb3.driving import made, step


@pytest.mark.parametrize("name", ["sync", "async"])
@pytest.mark.parametrize("reward", ["much", [1.0, 2.0], {"r": 1}])
def test_rewards_that_are_not_one_number_are_refused(reward: Any, name: str) -> None:
    class Odd(gym.RewardWrapper[Any, Any]):
        def reward(self, _: Any) -> Any:
            return reward

    env = sb3compat.to_sb3(made(name, [lambda: Odd(ScriptedEnv(script()))]))
    env.reset()
    got = rf"reward of row 0 to be one number.*\({type(reward).__name__}\)"
    with pytest.raises(sb3compat.ConversionError, match=got):
        step(env)
    env.close()


def test_reset_gets_the_arguments_that_dummy_vec_env_passes() -> None:
    common = pytest.importorskip("stable_baselines3.common.vec_env")

    class Noting(ScriptedEnv):
        def reset(self, **kwargs: Any) -> Any:
            return super().reset(**kwargs)[0], {"passed": kwargs}

    fns = [lambda: Noting(script())]
    ours, reference = sb3compat.to_sb3(made("sync", fns)), common.DummyVecEnv(fns)
    for seed, options in ((None, {}), (5, {}), (None, {"x": 1})):
        for env in (ours, reference):
            if seed is not None:
                env.seed(seed)
            env.set_options(options)
            env.reset()
        same(ours.reset_infos, reference.reset_infos)


def test_received_info_is_a_plain_dict() -> None:
    given = {"x": [1]}
    assert received_info(given) is given
    for kind in (OrderedDict, MappingProxyType):
        own = received_info(kind(given))  # type: ignore[operator]
        assert type(own) is dict
        assert own == given
