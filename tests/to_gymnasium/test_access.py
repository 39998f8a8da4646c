"""Attributes and frames of the sub-environments, as `SyncVectorEnv` has them."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import sb3compat
from tests.envs import ScriptedEnv, fns, script
from tests.handwritten import CountingVecEnv
from tests.interrupts import no_hang
from tests.lockstep import same
from tests.lockstep_back import dummy, monitored, subproc
from tests.vec_wrappers import HandsOn

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
        env.set_attr("mu", (0.0, -0.0))
        assert np.signbit(env.get_attr("mu")).tolist() == [False, True]
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


def stubs() -> Any:
    """Its methods answer nothing."""
    env = dummy(fns())
    env.get_attr = env.env_method = lambda *args, **kwargs: 1 / 0
    return env


@pytest.mark.parametrize("make", [CountingVecEnv, stubs])
def test_vec_env_that_tells_nothing_of_its_rows_has_a_generator_of_its_own(make: Any) -> None:
    envs = sb3compat.to_gymnasium(make())
    assert envs.np_random is envs.np_random
    assert isinstance(envs.np_random_seed, int)
    for _ in range(2):  # as Gymnasium's base class does
        envs.reset(seed=5)
        assert envs.np_random_seed == 5
        assert envs.np_random.random() == np.random.default_rng(5).random()
    envs.np_random = np.random.default_rng(3)
    assert envs.np_random_seed == -1


def locked(row: int) -> Any:
    """Cannot be pickled, as an environment with a window."""
    env: Any = ScriptedEnv(script(), row)
    env.lock, env.score = threading.Lock(), lambda indices=None: 42
    return env


@pytest.mark.parametrize("build", [dummy, subproc])
def test_methods_below_a_wrapper_that_answers_for_the_rows_are_called(build: Any) -> None:
    wrapped: Any = HandsOn(build([partial(locked, row) for row in range(2)]))
    wrapped.get_attr = lambda name, indices=None: (
        [1] * 2 if name == "level" else wrapped.venv.get_attr(name, indices)
    )
    envs = sb3compat.to_gymnasium(wrapped)
    envs.reset(seed=3)
    with no_hang():
        assert envs.call("score") == envs.get_attr("score") == (42, 42)
        assert envs.call("level") == (1, 1)
        assert envs.get_attr("row") == (0, 1)
        same(envs.step([0, 0])[3], np.array([False, False]))
        with pytest.raises(TypeError, match="no keyword argument 'indices' for 'score'"):
            envs.call("score", indices=3)
        assert envs.call("score", 3) == (42, 42)
    envs.close()


@pytest.mark.parametrize("own", [None, 7, {"difficulty": 3}, ["left"]])
def test_private_names_of_an_object_with_the_methods_of_a_vec_env_are_its_own(own: Any) -> None:
    similar: Any = CountingVecEnv(1)
    similar.render_mode = "rgb_array"
    similar._seeds = similar._options = own
    similar._reset_seeds = lambda: 1 / 0
    envs = sb3compat.to_gymnasium(similar, autoreset_mode="Disabled")
    envs.reset()
    envs.step([0])
    assert envs.step([0])[3].all()
    similar.reset = lambda: 1 / 0
    assert envs.reset()[0].tolist() == [[0]]  # hands out what is held
    with pytest.raises(ZeroDivisionError):
        envs.reset()
    assert (similar._seeds, similar._options) == (own, own)
    with pytest.raises(AttributeError, match=r"no method 'get_images'.*Add it"):
        envs.render()


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
