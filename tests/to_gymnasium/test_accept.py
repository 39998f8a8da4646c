"""Refused objects and arguments, each with an alternative."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import sb3compat
from tests.envs import ScriptedEnv, fns, script
from tests.handwritten import CountingVecEnv
from tests.lockstep_back import dummy, monitored
from tests.vec_wrappers import HandsOn

vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")


def counting(**attributes: Any) -> Any:
    env = CountingVecEnv()
    vars(env).update(attributes)
    return env


Case = tuple[Callable[[], Any], dict[str, Any], str]
REFUSED: dict[type[Exception], list[Case]] = {
    sb3compat.UnsupportedEnvError: [
        (lambda: ScriptedEnv(script()), {}, "single environment: pass DummyVecEnv"),
        (lambda: CountingVecEnv, {}, "call it"),
        (lambda: fns()[0], {}, "call it"),
        (fns, {}, "DummyVecEnv(list_of_functions)"),
        (lambda: None, {}, "vec_env=None (NoneType)"),
        (lambda: counting(action_space=3), {}, "action_space=3"),
        (
            lambda: SimpleNamespace(num_envs=2, action_space=spaces.Discrete(2)),
            {},
            "It has no observation_space, reset, step.",
        ),
    ],
    sb3compat.UnsupportedSpaceError: [
        (
            lambda: counting(observation_space=spaces.Text(3)),
            {},
            "observation_space=Text",
        ),
    ],
    sb3compat.ClosedError: [(lambda: counting(closed=True), {}, "was closed")],
    sb3compat.AutoresetModeError: [
        (
            lambda: monitored(fns()),
            {"autoreset_mode": AutoresetMode.NEXT_STEP},
            "put Gymnasium's wrappers around the result instead",
        ),
        (
            lambda: type("Mine", (vec_env.DummyVecEnv,), {})(fns()),
            {"autoreset_mode": "NEXT_STEP"},
            "'SameStep' or 'Disabled'",
        ),
        (lambda: SyncVectorEnv(fns()), {"autoreset_mode": "SAME_STEP"}, "pass to_sb3(env) instead"),
        (
            lambda: sb3compat.to_gymnasium(dummy(fns())),
            {"autoreset_mode": AutoresetMode.NEXT_STEP},
            "or autoreset_mode=AutoresetMode.SAME_STEP, as",
        ),
        (lambda: SyncVectorEnv(fns()), {"autoreset_mode": "Sometimes"}, "'Sometimes' (str)"),
    ],
    sb3compat.ConversionError: [
        (
            CountingVecEnv,
            {"autoreset_mode": AutoresetMode.DISABLED, "require_final_obs": False},
            "autoreset_mode='SameStep'",
        ),
        (lambda: SyncVectorEnv(fns()), {"missing_truncation": "terminated"}, "Leave it out"),
        (lambda: SyncVectorEnv(fns()), {"require_final_obs": False}, "no require_final_obs"),
    ],
}


@pytest.mark.parametrize(
    ("kind", "case"), [(kind, case) for kind in REFUSED for case in REFUSED[kind]]
)
def test_refused_environment_is_named_with_a_way_out(kind: type[Exception], case: Case) -> None:
    make, kwargs, message = case
    with pytest.raises(kind) as caught:
        sb3compat.to_gymnasium(make(), **kwargs)
    assert message in str(caught.value)


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
def test_wrapper_with_other_rows_than_its_base_is_refused(mode: str) -> None:
    """Infos of resets, seeds and attributes are those of the base, row by row."""
    half = HandsOn(dummy(fns(4)))
    half.num_envs = 2
    with pytest.raises(sb3compat.UnsupportedEnvError, match=r"num_envs=2 of .*num_envs=4 of"):
        sb3compat.to_gymnasium(half, autoreset_mode=mode)


def test_innermost_object_may_be_a_simulator() -> None:
    class AroundASimulator(CountingVecEnv):
        unwrapped = property(lambda self: object())

    envs = sb3compat.to_gymnasium(AroundASimulator())
    assert len(envs.reset()[0]) == envs.num_envs


def test_what_a_step_has_to_tell_is_asked_of_an_adapted_vector_env_too() -> None:
    vec_env = sb3compat.to_sb3(gym.make_vec("CartPole-v1", 2, vectorization_mode="sync"))
    given = {"autoreset_mode": "NextStep"}
    assert sb3compat.to_gymnasium(vec_env, **given) is vec_env.env
    for wrong in ({"missing_truncation": "x"}, {"require_final_obs": "x"}):
        with pytest.raises((TypeError, ValueError), match="Expected"):
            sb3compat.to_gymnasium(vec_env, **given, **wrong)
