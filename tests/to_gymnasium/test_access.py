"""Attributes and frames of the sub-environments, as `SyncVectorEnv` has them."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import sb3compat
from tests.envs import fns
from tests.handwritten import CountingVecEnv
from tests.lockstep import same
from tests.lockstep_back import dummy, monitored, subproc

vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")

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


class Stubs(vec_env.DummyVecEnv):  # type: ignore[misc, name-defined]
    """Its methods answer nothing."""

    def get_attr(self, name: str, indices: Any = None) -> Any:
        if name == "render_mode":  # SB3 itself asks for it
            return [None]
        raise ValueError(name)

    env_method = get_attr


@pytest.mark.parametrize("make", [CountingVecEnv, lambda: Stubs(fns())])
def test_vec_env_that_tells_nothing_of_its_rows_has_a_generator_of_its_own(make: Any) -> None:
    envs = sb3compat.to_gymnasium(make())
    assert envs.np_random is envs.np_random
    assert isinstance(envs.np_random_seed, int)
    envs.np_random = np.random.default_rng(3)
    assert envs.np_random_seed == -1


def test_envs_are_those_of_sync_vector_env() -> None:
    for build in (dummy, monitored, lambda made: sb3compat.to_sb3(SyncVectorEnv(made))):
        made = build(fns())
        envs = sb3compat.to_gymnasium(made, autoreset_mode="Disabled")
        assert [env.unwrapped.row for env in envs.envs] == [0, 1]
        assert envs.envs is made.unwrapped.envs
        envs.envs[1] = gym.wrappers.TimeLimit(envs.envs[1], 1)
        envs.reset()
        assert envs.step([0, 0])[3].tolist() == [False, True]


def test_envs_in_workers_are_no_attribute() -> None:
    envs = sb3compat.to_gymnasium(subproc(fns()))
    assert not hasattr(envs, "envs")
    with pytest.raises(AttributeError, match="no sub-environments in this process"):
        envs.envs  # noqa: B018
    envs.close()
    assert not hasattr(sb3compat.to_gymnasium(CountingVecEnv()), "envs")


def test_another_list_of_environments_is_stepped_and_asked_as_in_sync_vector_env() -> None:
    inner = dummy(fns(2))
    adapted = sb3compat.to_gymnasium(inner, autoreset_mode="NextStep")
    sync = SyncVectorEnv(fns(2))
    for name, by_adapter in (("one", True), ("two", False)):
        for envs in (adapted, sync):
            owner: Any = inner if envs is adapted and not by_adapter else envs
            owner.envs = [gym.wrappers.TimeLimit(single, 2) for single in envs.envs]
            envs.set_attr(name, 3)
            assert envs.get_attr(name) == (3, 3)
            assert all(name in vars(single) for single in envs.envs)
        same(adapted.reset(seed=0), sync.reset(seed=0))
        for _ in range(4):
            ours, theirs = (envs.step(np.zeros(2, np.int64)) for envs in (adapted, sync))
            same([ours[0], *ours[2:]], [theirs[0], *theirs[2:]])
