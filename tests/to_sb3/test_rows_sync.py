"""A bare `SyncVectorEnv`, driven row by row."""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

import sb3compat
from tests.envs import Identity, Returns, ScriptedEnv, fns, script
from tests.lockstep import same
from tests.lockstep_back import dummy
from tests.to_sb3.driving import Gives, step


@pytest.mark.parametrize("copy", [True, False])
def test_observations_and_infos_are_shared_only_without_a_copy(copy: bool) -> None:
    held = [1]
    holding = Gives(ScriptedEnv(script()), step={"held": held})
    env = sb3compat.to_sb3(SyncVectorEnv([lambda: holding]), copy=copy)
    first: Any = env.reset()
    before = first.copy()
    obs, _, _, infos = step(env)
    assert np.shares_memory(first, obs) != copy
    assert np.array_equal(first, before) == copy
    assert infos[0]["held"] == held
    assert (infos[0]["held"] is held) != copy


@pytest.mark.parametrize("by", ["adapter", "source"])
def test_another_list_of_environments_is_stepped_and_asked_as_in_dummy_vec_env(by: str) -> None:
    source = SyncVectorEnv(fns(2, lengths=(2, 3)))
    env, plain = sb3compat.to_sb3(source), dummy(fns(2, lengths=(2, 3)))
    for either in (env, plain):
        either.reset()
        owner = source if by == "source" and either is env else either
        owner.envs = [Gives(single, reset={"replaced": True}) for single in either.envs]
        either.set_attr("mark", 3)
        either.seed(0)
        either.reset()
    for _ in range(4):
        same(step(env), step(plain))
        same(env.reset_infos, plain.reset_infos)
    for either in (env, plain):
        assert either.env_is_wrapped(Gives) == [True, True]
        assert either.get_attr("mark") == [3, 3]
        assert [single.mark for single in either.envs] == [3, 3]


@pytest.mark.parametrize(
    ("info", "wraps"), [({"sim": Lock()}, [Identity]), ({"sim": Lock()}, []), (None, [])]
)
def test_what_dummy_vec_env_keeps_of_a_reset_is_kept(info: Any, wraps: Any) -> None:
    functions = [lambda: Returns(reset=lambda obs, _: (obs, info), lengths=(2,))] * 2
    source = SyncVectorEnv(functions)
    for wrap in wraps:
        source = wrap(source)
    for env in (dummy(functions), sb3compat.to_sb3(source)):
        env.reset()
        for _ in range(3):
            step(env)
        assert env.reset_infos == [info, info]


@pytest.mark.parametrize("value", [[300, 0], [float("nan"), 0], (1.5, 2), [-1, 0], ["7", 0]])
def test_python_values_in_integers_are_those_of_dummy_vec_env(value: Any) -> None:
    """An array is cast, and wraps; a number that does not fit is an error."""

    space = spaces.Box(0, 255, (2,), np.uint8)
    changes: Any = {"step": lambda _, *rest: (value, *rest), "observation_space": space}
    functions = [lambda: Returns(**changes)] * 2
    results = []
    for env in (dummy(functions), sb3compat.to_sb3(SyncVectorEnv(functions))):
        env.reset()
        try:
            results.append(step(env)[0].tolist())
        except (OverflowError, ValueError, TypeError) as error:
            results.append([type(error).__name__, str(error)])
    assert results[0] == results[1]
