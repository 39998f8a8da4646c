"""Ids are resolved as `gymnasium.make` resolves them."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import sb3compat
import tests.registered  # noqa: F401
from sb3compat._upstream.private import private
from tests.envs import ScriptedEnv, script

IDS = ["CartPole-v1", "CartPole", "CartPole-v0", "tests.registered:Scripted", "Scripted-v1"]
WRONG = ["Nonsense-v1", "CartPole-v9", "no_such_module:CartPole-v1", "nowhere/CartPole-v1", "a b"]


def outcome(call: Any, env_id: str) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call(env_id).id
        except Exception as error:
            result = (type(error), str(error))
    return result, [str(each.message) for each in caught]


@pytest.mark.parametrize("env_id", [*IDS, *WRONG])
def test_spec_warnings_and_errors_are_those_of_make(env_id: str) -> None:
    spec_of = private(gym.envs.registration, "_find_spec")
    assert outcome(spec_of, env_id) == outcome(lambda name: gym.make(name).spec, env_id)


@pytest.mark.parametrize("env_id", WRONG)
@pytest.mark.parametrize("mode", [None, "sync", "native", "fastest", "async", "parallel"])
def test_unknown_id_is_refused_as_by_make_before_workers_start(env_id: str, mode: str) -> None:
    def make(name: str) -> Any:
        return sb3compat.make_vec_env(name, 2, vectorization_mode=mode)

    assert outcome(make, env_id)[0] == outcome(gym.make, env_id)[0]


def test_workers_make_what_only_the_program_has_registered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gym.envs.registration, "registry", {**gym.registry})
    gym.register("OnlyHere-v3", lambda **_: ScriptedEnv(script(lengths=(2,))))
    env = sb3compat.make_vec_env(
        "OnlyHere-v3", 2, vectorization_mode="async", vec_env_kwargs={"context": "spawn"}
    )
    env.reset()
    env.step(np.zeros(2, int))
    assert env.step(np.zeros(2, int))[2].all()
    env.close()
