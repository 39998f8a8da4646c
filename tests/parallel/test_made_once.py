"""Functions that return one environment, called in different workers."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from contextlib import closing
from functools import partial
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.vector import SyncVectorEnv

import sb3compat
from sb3compat._ipc import by_value
from sb3compat._parallel.made_once import check_made_once, environments_in, position_of
from tests.envs import MakeEnv, script
from tests.parallel.teams import forked

ENV = MakeEnv(script(), 0)()


class Carries:
    def __init__(self, *envs: Any) -> None:
        self.envs = envs

    def __call__(self) -> Any:
        return self.envs[-1]

    def first(self) -> Any:
        return self.envs[0]


def identity(env: Any) -> Any:
    return env


def of_the_module() -> Any:
    return ENV


def shares(env: Any, other: Any) -> dict[str, list[Any]]:
    """Two functions that return one environment, in each way to refer to it."""

    def through_another(make: Any = lambda: env) -> Any:
        return make()

    holder = SimpleNamespace(other=other, inner={"env": env})
    return {
        "closure": [lambda: env] * 2,
        "closures of their own": [lambda: env, lambda: gym.Wrapper(env)],
        "default": [lambda env=env: env, lambda *, env=env: env],
        "partial": [partial(identity, env), partial(identity, env=gym.Wrapper(env))],
        "list": [lambda envs=[other, env]: envs[1], lambda envs={"x": env}: envs["x"]],
        "object": [Carries(other, env), Carries(other, env).__call__],
        "method": [Carries(env, other).first] * 2,
        "attribute": [lambda: holder.inner["env"]] * 2,
        "function inside": [through_another] * 2,
        "module": [of_the_module] * 2,
    }


@pytest.mark.parametrize("way", shares(ENV, ENV))
def test_what_is_returned_is_found_in_copies_of_the_functions(way: str) -> None:
    functions = shares(MakeEnv(script(), 0)(), MakeEnv(script(), 1)())[way]
    returned = []
    for function in functions:  # each in a worker of its own
        [copied] = pickle.loads(by_value.dumps([function]))
        returned.append(position_of(copied(), environments_in(copied)))
    with pytest.raises(sb3compat.UnsupportedEnvError, match=r"env_fns\[1\] to make a new"):
        check_made_once(functions, returned)


@pytest.mark.parametrize("method", [None, *multiprocessing.get_all_start_methods()])
def test_one_environment_is_refused_whatever_the_number_of_workers(method: str | None) -> None:
    env = MakeEnv(script(), 0)()
    for workers in (1, 2):
        with pytest.raises(sb3compat.UnsupportedEnvError, match=r"env_fns\[1\] to make a new"):
            sb3compat.ParallelVecEnv([lambda: env] * 2, workers, start_method=method)


@pytest.mark.parametrize("parent_steps", [False, True])
def test_vector_environments_are_refused_too(parent_steps: bool) -> None:
    part = SyncVectorEnv([MakeEnv(script(), row) for row in range(2)])
    functions = [MakeEnv(script(), 0), lambda: part, lambda: part]
    with pytest.raises(sb3compat.UnsupportedEnvError, match=r"env_fns\[2\] to make a new"):
        forked(functions, 3 - parent_steps, parent_steps=parent_steps)


@pytest.mark.parametrize("method", [None, "fork"])
def test_environments_that_were_made_before_may_go_to_workers(method: str) -> None:
    envs = [MakeEnv(script(), row)() for row in range(3)]
    pattern = envs[0]

    def appended() -> Any:
        envs.append(MakeEnv(script(), 3)())
        return envs[-1]

    functions = [
        lambda: envs[1],
        lambda env=envs[2]: env,
        *[lambda: copy.deepcopy(pattern)] * 2,
        *[appended] * 2,
    ]
    with closing(sb3compat.ParallelVecEnv(functions, 6, start_method=method)) as env:
        env.reset()


def test_search_ends() -> None:
    many: list[Any] = [object() for _ in range(100_000)]
    many.append(many)
    assert environments_in(lambda: many) == []


class StandsForNothing:
    """As the proxies of web frameworks outside of a request."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("there is nothing that this could stand for")


def test_object_that_has_no_attributes_is_passed_over() -> None:
    strange = StandsForNothing()
    assert environments_in(lambda: (strange, ENV)) == [ENV.unwrapped]


def test_variable_that_is_set_later_is_no_environment() -> None:
    later: Any

    def function() -> Any:
        return later

    assert environments_in(function) == []
    later = ENV
    assert environments_in(function) == [ENV.unwrapped]
