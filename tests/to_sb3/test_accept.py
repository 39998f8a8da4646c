"""Refused objects and environments, each with an alternative, and the autoreset mode."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import sb3compat
from tests.envs import Identity, ScriptedEnv, fns, script
from tests.lockstep import same
from tests.native import NativeEnv, UnknownEnv, reset_native
from tests.to_sb3.driving import DISABLED, NEXT_STEP, SAME_STEP, class_of

ONE_ENV = ScriptedEnv(script())


def closed() -> Any:
    env = SyncVectorEnv(fns())
    env.close()
    return env


def vectorized() -> Any:
    return SyncVectorEnv(fns())


REFUSED = {
    "a single environment": (
        lambda: ONE_ENV,
        sb3compat.UnsupportedEnvError,
        ["gymnasium.vector.VectorEnv", "ScriptedEnv", "SyncVectorEnv([make_env] * n)", "make_vec"],
    ),
    "a function": (
        lambda: lambda: SyncVectorEnv(fns()),
        sb3compat.UnsupportedEnvError,
        ["gymnasium.vector.VectorEnv", "function", "call it"],
    ),
    "an id": (
        lambda: "CartPole-v1",
        sb3compat.UnsupportedEnvError,
        ["pass it: gymnasium.make_vec('CartPole-v1', num_envs=n)"],
    ),
    "a list of functions": (
        lambda: fns(),
        sb3compat.UnsupportedEnvError,
        ["pass the result: gymnasium.vector.SyncVectorEnv("],
    ),
    "nothing": (lambda: None, sb3compat.UnsupportedEnvError, ["NoneType", "make_vec"]),
    "one environment in two rows": (
        lambda: SyncVectorEnv([lambda: ONE_ENV, lambda: ONE_ENV]),
        sb3compat.UnsupportedEnvError,
        ["rows 0 and 1", "ScriptedEnv", "not `lambda: env`"],
    ),
    "one environment in two rows, wrapped": (
        lambda: Identity(
            SyncVectorEnv([fns()[0], lambda: ONE_ENV, lambda: gym.wrappers.TimeLimit(ONE_ENV, 9)])
        ),
        sb3compat.UnsupportedEnvError,
        ["rows 1 and 2"],
    ),
    "vector environments as rows": (
        lambda: SyncVectorEnv([vectorized, vectorized]),
        sb3compat.UnsupportedEnvError,
        ["row 0 holds SyncVectorEnv", "ParallelVecEnv"],
    ),
    "no mode": (
        lambda: UnknownEnv(fns(), None),
        sb3compat.AutoresetModeError,
        ["UnknownEnv", "autoreset_mode", "'NextStep' | 'SameStep' | 'Disabled'"],
    ),
    "NEXT_STEP without partial reset": (
        lambda: UnknownEnv(fns(), NEXT_STEP),
        sb3compat.PartialResetError,
        [
            "UnknownEnv",
            "AutoresetMode.SAME_STEP",
            "sb3compat.register_partial_reset(UnknownEnv, function)",
            "padding=True",
        ],
    ),
    "closed": (closed, sb3compat.ClosedError, ["was closed"]),
    "a nested space": (
        lambda: SyncVectorEnv(
            fns(observation_space=spaces.Dict({"a": spaces.Dict({"b": spaces.Discrete(2)})}))
        ),
        sb3compat.UnsupportedSpaceError,
        ["observation_space['a']", "nested Dict", "FlattenObservation"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_environment_is_named_with_a_way_out(name: str) -> None:
    make: Any
    make, kind, parts = REFUSED[name]
    with pytest.raises(kind) as caught:
        sb3compat.to_sb3(make())
    assert isinstance(caught.value, sb3compat.ConversionError | sb3compat.ClosedError)
    for part in parts:
        assert part in str(caught.value)


def test_mode_comes_from_argument_then_instance_then_metadata() -> None:
    env = NativeEnv(fns(), SAME_STEP)
    assert sb3compat.to_sb3(env).autoreset_mode == SAME_STEP
    env.metadata = {"autoreset_mode": "SameStep"}
    assert sb3compat.to_sb3(env).autoreset_mode == SAME_STEP
    env.autoreset_mode = NEXT_STEP
    assert sb3compat.to_sb3(env).autoreset_mode == NEXT_STEP
    for given in ("Disabled", "DISABLED", DISABLED):
        with pytest.warns(UserWarning, match=r"NativeEnv.* declares .*NEXT_STEP.* overrides it"):
            adapted = sb3compat.to_sb3(env, autoreset_mode=given)
        assert adapted.autoreset_mode == DISABLED


@pytest.mark.parametrize("given", ["SameStep", "SAME_STEP", SAME_STEP])
@pytest.mark.parametrize("declared", ["attribute", "metadata", "nowhere"])
def test_argument_that_says_what_is_declared_is_no_warning(given: Any, declared: str) -> None:
    env = NativeEnv(fns(), SAME_STEP)
    if declared != "metadata":
        env.metadata = {}
    if declared == "attribute":
        env.autoreset_mode = "SameStep"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sb3compat.to_sb3(env, autoreset_mode=given).autoreset_mode == SAME_STEP


def test_mode_is_right_although_two_environments_share_metadata() -> None:
    # Up to Gymnasium 1.3 both are one dict, and the second environment's mode stands in it.
    class Shared(ScriptedEnv):
        metadata = {"render_modes": []}

    first = SyncVectorEnv([lambda: Shared(script())], autoreset_mode=SAME_STEP)
    second = SyncVectorEnv([lambda: Shared(script())], autoreset_mode=NEXT_STEP)
    first.metadata = second.metadata
    assert sb3compat.to_sb3(Identity(first)).autoreset_mode == SAME_STEP


@pytest.mark.filterwarnings("ignore:The `render_mode` attribute is not defined:UserWarning")
def test_wrapper_of_sb3_around_a_vector_environment_is_refused() -> None:
    vec_envs = pytest.importorskip("stable_baselines3.common.vec_env")
    env = vec_envs.VecMonitor(NativeEnv(fns(), SAME_STEP))
    with pytest.raises(sb3compat.UnsupportedEnvError, match=r"VecMonitor\(to_sb3\(env\)\)"):
        sb3compat.to_sb3(env)


@class_of
def test_mode_that_contradicts_the_environment_is_refused(cls: Any) -> None:
    env = cls(fns(), autoreset_mode=SAME_STEP)
    with pytest.raises(sb3compat.AutoresetModeError, match="was built with"):
        sb3compat.to_sb3(env, autoreset_mode=NEXT_STEP)
    env.close()


@pytest.mark.parametrize("option", [{"timeout": 5.0}, {"padding": True}])
def test_option_without_effect_on_a_vec_env_is_refused(option: dict[str, Any]) -> None:
    vec_env = sb3compat.to_sb3(gym.make_vec("CartPole-v1", num_envs=2))
    within = sb3compat.to_gymnasium(
        sb3compat.to_sb3(gym.make_vec("CartPole-v1", num_envs=2)), autoreset_mode="SameStep"
    )
    for env in (vec_env, within):
        with pytest.raises(ValueError, match="a VecEnv already"):
            sb3compat.to_sb3(env, **option)
    assert sb3compat.to_sb3(vec_env, copy=False, autoreset_mode="NextStep") is vec_env
    for wrong in ({"copy": "no"}, {"require_final_obs": 0}, {"autoreset_mode": "next"}):
        with pytest.raises((TypeError, ValueError), match="Expected"):
            sb3compat.to_sb3(vec_env, **wrong)


@pytest.mark.parametrize("name", ["call", "get_attr", "set_attr", "render", "reset_rows"])
def test_subclass_of_the_adapter_is_not_thrown_away(name: str) -> None:
    vec_envs = pytest.importorskip("stable_baselines3.common.vec_env")

    def own(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(sb3compat.VectorEnvAdapter, name)(self, *args, **kwargs)

    cls = type("Own", (sb3compat.VectorEnvAdapter,), {name: own})
    vec_env = vec_envs.DummyVecEnv(fns(2))
    for plain in (vec_env, sb3compat.VectorEnvAdapter(vec_env)):
        assert sb3compat.to_sb3(plain) is vec_env
    adapter = cls(vec_env)
    assert getattr(sb3compat.to_sb3(adapter), "env", None) is adapter


@pytest.mark.parametrize("name", ["observation_space", "action_space"])
def test_wrapper_that_changes_only_the_space_of_the_batch_is_refused(name: str) -> None:
    env: Any = Identity(Identity(SyncVectorEnv(fns(2))))
    setattr(env.env, name, spaces.Box(0, 1, (2, 3)))
    with pytest.raises(sb3compat.UnsupportedEnvError, match=f"Set its single_{name} as well"):
        sb3compat.to_sb3(env)
    setattr(env.env, f"single_{name}", spaces.Box(0, 1, (3,)))
    assert getattr(sb3compat.to_sb3(env), name) == spaces.Box(0, 1, (3,))


@pytest.mark.parametrize("wrap", [lambda env: env, Identity])
@pytest.mark.parametrize("mode", AutoresetMode)
def test_innermost_object_may_be_a_simulator(mode: AutoresetMode, wrap: Any) -> None:
    """As that of ManiSkill's class is."""

    class AroundASimulator(NativeEnv):
        unwrapped = property(lambda self: ONE_ENV)

    sb3compat.register_partial_reset(AroundASimulator, reset_native)
    envs = [
        sb3compat.to_sb3(wrap(cls(fns(3, lengths=(2, 3)), mode)))
        for cls in (NativeEnv, AroundASimulator)
    ]
    for env in envs:
        env.seed(1)
    same(*(env.reset() for env in envs))
    for _ in range(8):
        (*plain, infos), (*around, others) = (env.step(np.zeros(3, int)) for env in envs)
        same(plain, around)
        assert [sorted(info) for info in infos] == [sorted(info) for info in others]


@pytest.mark.parametrize("mode", AutoresetMode)
def test_wrapper_with_other_rows_than_its_base_is_refused(mode: AutoresetMode) -> None:
    class Half(Identity):
        @property
        def num_envs(self) -> int:  # type: ignore[override]
            return self.env.num_envs // 2

    with pytest.raises(sb3compat.UnsupportedEnvError, match=r"num_envs=2 of .*num_envs=4 of"):
        sb3compat.to_sb3(Half(SyncVectorEnv(fns(4), autoreset_mode=mode)))


def test_mode_is_found_where_the_environment_cannot_be_shown() -> None:
    """Gymnasium's text of a vector environment needs an `EnvSpec`."""
    source = UnknownEnv(fns(), AutoresetMode.SAME_STEP)
    source.spec = {"scene": "flat"}  # type: ignore[assignment]
    assert sb3compat.to_sb3(source).autoreset_mode == AutoresetMode.SAME_STEP
