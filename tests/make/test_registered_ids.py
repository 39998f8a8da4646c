"""Ids are resolved as `gymnasium.make` resolves them."""

from __future__ import annotations

import re

import gymnasium as gym
import numpy as np
import pytest

import sb3compat
import tests.registered  # noqa: F401
from tests.envs import ScriptedEnv, script
from tests.interrupts import attempt

WRONG = ["Nonsense-v1", "CartPole-v9", "no_such_module:CartPole-v1", "nowhere/CartPole-v1", "a b"]


@pytest.mark.parametrize("env_id", WRONG)
@pytest.mark.parametrize("mode", [None, "sync", "native", "fastest", "async", "parallel"])
def test_unknown_id_is_refused_as_by_make_before_workers_start(env_id: str, mode: str) -> None:
    _, expected = attempt(lambda: gym.make(env_id), Exception)
    with pytest.raises(type(expected), match=f"^{re.escape(str(expected))}$"):
        sb3compat.make_vec_env(env_id, 2, vectorization_mode=mode)


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
