"""The yardstick: what `DummyVecEnv` yields, value for value, from every source and mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

import sb3compat
from tests.envs import Identity, MakeEnv, fns, script
from tests.lockstep import Build, lockstep
from tests.profiles import examples
from tests.strategies import programs, scripts
from tests.to_sb3.driving import DISABLED, NEXT_STEP, SAME_STEP, mode_of

pytest.importorskip("stable_baselines3", reason="the yardstick is SB3's DummyVecEnv")


def wrapped(make: Callable[..., Any], layers: int, **kwargs: Any) -> Build:
    """A function that makes the environment in so many wrappers."""

    def build(fns: list[MakeEnv]) -> VectorEnv[Any, Any, Any]:
        env = make(fns, **kwargs)
        for _ in range(layers):
            env = Identity(env)
        return env  # type: ignore[no-any-return]

    return build


@mode_of
@given(data=st.data(), n=st.integers(1, 4), copy=st.booleans(), layers=st.integers(0, 2))
@settings(max_examples=examples(300))
def test_sync_equals_dummy_vec_env(
    mode: AutoresetMode, data: st.DataObject, n: int, copy: bool, layers: int
) -> None:
    chosen = data.draw(
        scripts(("none", "plain"), reuse=mode != SAME_STEP) if layers else scripts(shared=True)
    )
    build = wrapped(SyncVectorEnv, layers, autoreset_mode=mode, copy=copy)
    lockstep(chosen, n, build, data.draw(programs(n)))


@mode_of
@pytest.mark.parametrize("layers", [0, 1])
@given(data=st.data(), n=st.integers(1, 3), copy=st.booleans(), shared_memory=st.booleans())
@settings(max_examples=examples(24))
def test_async_equals_dummy_vec_env(
    layers: int, mode: AutoresetMode, data: st.DataObject, n: int, copy: bool, shared_memory: bool
) -> None:
    # A worker in SAME_STEP mode resets before it sends: there, reused arrays are refused.
    sole = mode != SAME_STEP
    infos = ("none", "plain") if layers else ("none", "plain", "wild")
    chosen = data.draw(scripts(infos, reuse=sole, shared=sole and not layers))
    kwargs = {"autoreset_mode": mode, "copy": copy, "shared_memory": shared_memory}
    lockstep(chosen, n, wrapped(AsyncVectorEnv, layers, **kwargs), data.draw(programs(n)))


def doubling(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same method, with rewards of twice the size."""

    def doubled(*args: Any, **kwargs: Any) -> Any:
        obs, rewards, *others = method(*args, **kwargs)
        return obs, 2 * rewards, *others

    return doubled


def overriding(cls: Any, name: str) -> Callable[..., Any]:
    """A subclass, with a mixin before the class that overrides the method."""
    mixin = type("Mixin", (), {name: doubling(getattr(cls, name))})
    return type(f"{cls.__name__}.{name}", (mixin, cls), {})


def patched(fns: list[MakeEnv], **kwargs: Any) -> VectorEnv[Any, Any, Any]:
    """A method of the instance itself."""
    env: Any = SyncVectorEnv(fns, **kwargs)
    env.step = doubling(env.step)
    return env  # type: ignore[no-any-return]


def twice_rewards(env: Any) -> Any:
    """What the reference does to each sub-environment instead."""
    return gym.wrappers.TransformReward(env, lambda reward: 2 * reward)


OVERRIDES: list[Callable[..., Any]] = [
    overriding(SyncVectorEnv, "step"),
    overriding(AsyncVectorEnv, "step"),
    overriding(AsyncVectorEnv, "step_wait"),  # which `step` calls
    patched,
]
every_override = pytest.mark.parametrize("make", OVERRIDES, ids=lambda make: make.__name__)


@every_override
@pytest.mark.parametrize("mode", [SAME_STEP, DISABLED])
@given(data=st.data(), n=st.integers(1, 3), copy=st.booleans(), layers=st.integers(0, 1))
@settings(max_examples=examples(12))
def test_overriding_subclasses_equal_dummy_vec_env(
    mode: AutoresetMode, make: Any, data: st.DataObject, n: int, copy: bool, layers: int
) -> None:
    chosen = data.draw(scripts(("none", "plain"), reuse=False))
    build = wrapped(make, layers, autoreset_mode=mode, copy=copy)
    lockstep(chosen, n, build, data.draw(programs(n)), wrap=twice_rewards)


@every_override
def test_overriding_subclasses_are_refused_where_their_code_would_be_bypassed(make: Any) -> None:
    for layers in (0, 1):
        env = wrapped(make, layers)(fns(2))
        name = "step_wait" if make.__name__.endswith("step_wait") else "step"
        with pytest.raises(sb3compat.PartialResetError, match=f"{name!r} is overridden"):
            sb3compat.to_sb3(env)
        env.close()


@pytest.mark.parametrize(
    "space", [gym.spaces.Dict({}), gym.spaces.Tuple([])], ids=["Dict", "Tuple"]
)
def test_empty_actions_equal_those_of_dummy_vec_env(space: Any) -> None:
    # As lists of single actions, which is how DummyVecEnv takes them.
    program: list[Any] = [("reset", None), *[("step", number) for number in (1, 3, 5)]]
    chosen = script(action_space=space, lengths=(2, 3))
    for cls in (SyncVectorEnv, AsyncVectorEnv):
        lockstep(chosen, 2, wrapped(cls, 0, autoreset_mode=NEXT_STEP), program)
        with pytest.raises(sb3compat.UnsupportedSpaceError, match="at least one part"):
            lockstep(chosen, 2, wrapped(cls, 1), program)
