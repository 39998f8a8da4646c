"""Refused objects and arguments, each with the way out."""

from __future__ import annotations

from typing import Any, cast

import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import sb3compat
from sb3compat._to_gymnasium.accept import check_vec_env
from tests.envs import ScriptedEnv, fns, script
from tests.handwritten import AsyncCountingVecEnv, CountingVecEnv
from tests.lockstep_back import dummy, monitored

pytest.importorskip("stable_baselines3")

NEXT_STEP, DISABLED = AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED

REFUSED = {
    "a single environment": (
        lambda: ScriptedEnv(script()),
        {},
        sb3compat.UnsupportedEnvError,
        "single environment: pass DummyVecEnv",
    ),
    "a class": (lambda: CountingVecEnv, {}, sb3compat.UnsupportedEnvError, "call it"),
    "a function": (lambda: fns()[0], {}, sb3compat.UnsupportedEnvError, "call it"),
    "a list": (fns, {}, sb3compat.UnsupportedEnvError, "DummyVecEnv(list_of_functions)"),
    "nothing": (lambda: None, {}, sb3compat.UnsupportedEnvError, "vec_env=None (NoneType)"),
    "spaces that are none": (
        lambda: with_attributes(CountingVecEnv(), action_space=3),
        {},
        sb3compat.UnsupportedEnvError,
        "action_space=3",
    ),
    "an observation space that SB3 cannot batch": (
        lambda: with_attributes(CountingVecEnv(), observation_space=spaces.Text(3)),
        {},
        sb3compat.UnsupportedSpaceError,
        "observation_space=Text",
    ),
    "closed": (
        lambda: with_attributes(CountingVecEnv(), closed=True),
        {},
        sb3compat.ClosedError,
        "was closed",
    ),
    "an unknown mode": (
        lambda: dummy(fns()),
        {"autoreset_mode": "Sometimes"},
        sb3compat.AutoresetModeError,
        "autoreset_mode='Sometimes' (str)",
    ),
    "NEXT_STEP with a wrapper": (
        lambda: monitored(fns()),
        {"autoreset_mode": NEXT_STEP},
        sb3compat.AutoresetModeError,
        "put Gymnasium's wrappers on top instead",
    ),
    "NEXT_STEP of a subclass": (
        lambda: subclass_of_dummy(fns()),
        {"autoreset_mode": "NEXT_STEP"},
        sb3compat.AutoresetModeError,
        "'SameStep' or 'Disabled'",
    ),
    "an option that is none": (
        lambda: dummy(fns()),
        {"missing_truncation": "truncated"},
        sb3compat.ConversionError,
        "missing_truncation='truncated' (str)",
    ),
    "DISABLED without last observations": (
        CountingVecEnv,
        {"autoreset_mode": DISABLED, "require_final_obs": False},
        sb3compat.ConversionError,
        "autoreset_mode='SameStep'",
    ),
}


def with_attributes(env: Any, **attributes: Any) -> Any:
    for name, value in attributes.items():
        setattr(env, name, value)
    return env


def subclass_of_dummy(rows: Any) -> Any:
    from stable_baselines3.common.vec_env import DummyVecEnv

    class Mine(DummyVecEnv):
        pass

    return Mine(rows)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_environment_is_named_with_a_way_out(name: str) -> None:
    make, kwargs, kind, message = cast(Any, REFUSED[name])
    with pytest.raises(kind) as caught:
        sb3compat.to_gymnasium(make(), **kwargs)
    assert message in str(caught.value)


def test_missing_methods_are_named() -> None:
    class Half:
        num_envs = 2
        action_space = spaces.Discrete(2)

    with pytest.raises(sb3compat.UnsupportedEnvError) as caught:
        check_vec_env(Half())
    assert "It has no observation_space, reset, step." in str(caught.value)


@pytest.mark.parametrize("cls", [CountingVecEnv, AsyncCountingVecEnv])
def test_methods_of_a_vec_env_are_enough(cls: Any) -> None:
    check_vec_env(cls())
