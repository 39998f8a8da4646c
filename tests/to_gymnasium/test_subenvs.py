"""How the sub-environments are reached: called, read and set."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import sb3compat
from tests.envs import ScriptedEnv, fns, script
from tests.lockstep import same
from tests.lockstep_back import dummy

pytest.importorskip("stable_baselines3")

SAME_STEP = AutoresetMode.SAME_STEP


def test_sub_environments_can_be_called(envs: Any) -> None:
    theirs = SyncVectorEnv(fns(), autoreset_mode=SAME_STEP)
    for env in (envs, theirs):
        env.reset(seed=[3, 4])
        assert env.call("set_mu", 2.5) == (2.5, 3.5)
        assert env.call("set_mu", mu=1.5) == (1.5, 2.5)
        assert env.get_attr("mu") == env.call("mu") == (1.5, 1.5)
        assert env.get_attr("__str__") == env.call("__str__")  # a method is called
        env.set_attr("mu", 4)
        assert env.get_attr("mu") == (4, 4)
        env.set_attr("mu", [5, 6])
        assert env.get_attr("mu") == (5, 6)
        env.set_attr("mu", (7, 8))
        assert env.get_attr("mu") == (7, 8)
        with pytest.raises(ValueError, match="values"):
            env.set_attr("mu", [1, 2, 3])
        with pytest.raises(AttributeError, match="nu"):
            env.get_attr("nu")
        assert env.get_attr("mu") == (7, 8)
        assert env.np_random_seed == (3, 4)
    numbers = [[rng.random() for rng in env.np_random] for env in (envs, theirs)]
    assert numbers[0] == numbers[1]
    same(envs.render(), theirs.render())


def test_set_attr_lands_where_gymnasium_sets_it() -> None:
    made = [lambda: gym.wrappers.TimeLimit(ScriptedEnv(script()), 5)] * 2
    ours = sb3compat.to_gymnasium(dummy(made))
    ours.set_attr("mu", 9)
    assert [env.unwrapped.mu for env in ours.vec_env.envs] == [9, 9]
