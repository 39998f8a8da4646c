"""Refused objects and arguments, each with an alternative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import sb3compat
from tests.envs import ScriptedEnv, fns, script
from tests.handwritten import CountingVecEnv
from tests.lockstep_back import dummy, monitored

vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")


class Half:
    num_envs = 2
    action_space = spaces.Discrete(2)


Case = tuple[Callable[[], Any], dict[str, Any], str]
REFUSED: dict[type[Exception], list[Case]] = {
    sb3compat.UnsupportedEnvError: [
        (lambda: ScriptedEnv(script()), {}, "single environment: pass DummyVecEnv"),
        (lambda: CountingVecEnv, {}, "call it"),
        (lambda: fns()[0], {}, "call it"),
        (fns, {}, "DummyVecEnv(list_of_functions)"),
        (lambda: None, {}, "vec_env=None (NoneType)"),
        (lambda: with_attributes(CountingVecEnv(), action_space=3), {}, "action_space=3"),
        (Half, {}, "It has no observation_space, reset, step."),
    ],
    sb3compat.UnsupportedSpaceError: [
        (
            lambda: with_attributes(CountingVecEnv(), observation_space=spaces.Text(3)),
            {},
            "observation_space=Text",
        ),
    ],
    sb3compat.ClosedError: [
        (lambda: with_attributes(CountingVecEnv(), closed=True), {}, "was closed")
    ],
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


def with_attributes(env: Any, **attributes: Any) -> Any:
    for name, value in attributes.items():
        setattr(env, name, value)
    return env


@pytest.mark.parametrize(
    ("kind", "case"), [(kind, case) for kind in REFUSED for case in REFUSED[kind]]
)
def test_refused_environment_is_named_with_a_way_out(kind: type[Exception], case: Case) -> None:
    make, kwargs, message = case
    with pytest.raises(kind) as caught:
        sb3compat.to_gymnasium(make(), **kwargs)
    assert message in str(caught.value)


def test_wrapper_with_other_rows_than_its_base_is_refused() -> None:
    """Infos of resets, seeds and attributes are those of the base, row by row."""
    vec_envs = pytest.importorskip("stable_baselines3.common.vec_env")

    class Half(vec_envs.VecEnvWrapper):  # type: ignore[misc, name-defined]
        def __init__(self, venv: Any) -> None:
            super().__init__(venv)
            self.num_envs = venv.num_envs // 2

        def reset(self) -> Any:
            return self.venv.reset()[: self.num_envs]

        def step_wait(self) -> Any:
            return tuple(part[: self.num_envs] for part in self.venv.step_wait())

    for mode in ("SameStep", "Disabled"):
        with pytest.raises(sb3compat.UnsupportedEnvError, match=r"num_envs=2 of .*num_envs=4 of"):
            sb3compat.to_gymnasium(Half(vec_envs.DummyVecEnv(fns(4))), autoreset_mode=mode)


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
