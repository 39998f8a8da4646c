"""Refused objects and environments, each with an alternative, and the autoreset mode."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import sb3compat
from tests.envs import Identity, ScriptedEnv, fns, overriding, script
from tests.lockstep import same
from tests.lockstep_back import dummy
from tests.native import NativeEnv, UnknownEnv, reset_native
from tests.to_sb3.driving import DISABLED, NEXT_STEP, SAME_STEP, class_of, mode_of, step

ONE_ENV = ScriptedEnv(script())


def closed() -> Any:
    env = SyncVectorEnv(fns())
    env.close()
    return env


def in_rows(*rows: Any) -> Any:
    """These objects themselves in the rows."""
    return SyncVectorEnv([lambda row=row: row for row in rows])


UNSUPPORTED = sb3compat.UnsupportedEnvError
NESTED = spaces.Dict({"a": spaces.Dict({"b": spaces.Discrete(2)})})
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ONE_ENV, UNSUPPORTED, "SyncVectorEnv([make_env] * n)"),
    (lambda: closed, UNSUPPORTED, "call it"),
    (lambda: "CartPole-v1", UNSUPPORTED, "pass it: gymnasium.make_vec('CartPole-v1', num_envs=n)"),
    (fns, UNSUPPORTED, "pass the result: gymnasium.vector.SyncVectorEnv("),
    (lambda: None, UNSUPPORTED, "(NoneType)"),
    (lambda: in_rows(ONE_ENV, ONE_ENV), UNSUPPORTED, "rows 0 and 1"),
    (
        lambda: Identity(in_rows(fns()[0](), ONE_ENV, gym.wrappers.TimeLimit(ONE_ENV, 9))),
        UNSUPPORTED,
        "rows 1 and 2",
    ),
    (lambda: in_rows(SyncVectorEnv(fns())), UNSUPPORTED, "row 0 holds SyncVectorEnv"),
    (lambda: UnknownEnv(fns(), None), sb3compat.AutoresetModeError, "'NextStep' | 'SameStep' |"),
    (
        lambda: UnknownEnv(fns(), NEXT_STEP),
        sb3compat.PartialResetError,
        "sb3compat.register_partial_reset(UnknownEnv, function)",
    ),
    (closed, sb3compat.ClosedError, "was closed"),
    (
        lambda: SyncVectorEnv(fns(observation_space=NESTED)),
        sb3compat.UnsupportedSpaceError,
        "observation_space['a']",
    ),
]


@pytest.mark.parametrize(("make", "kind", "text"), REFUSED)
def test_refused_environment_is_named_with_a_way_out(
    make: Any, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as caught:
        sb3compat.to_sb3(make())
    assert isinstance(caught.value, sb3compat.ConversionError | sb3compat.ClosedError)
    assert text in str(caught.value)


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
    vec_env = dummy(fns(2))
    adapter = sb3compat.VectorEnvAdapter(vec_env)
    for plain in (vec_env, adapter):
        assert sb3compat.to_sb3(plain) is vec_env
    overriding(adapter, name)
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
@mode_of
def test_innermost_object_may_be_a_simulator(mode: AutoresetMode, wrap: Any) -> None:
    """As that of ManiSkill's class is."""

    class AroundASimulator(NativeEnv):
        unwrapped = property(lambda self: ONE_ENV)

    sb3compat.register_partial_reset(AroundASimulator, reset_native)
    plain, around = (
        sb3compat.to_sb3(wrap(cls(fns(3, lengths=(2, 3)), mode)))
        for cls in (NativeEnv, AroundASimulator)
    )
    same(around.reset(), plain.reset())
    for _ in range(8):
        same(step(around), step(plain))


@mode_of
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
