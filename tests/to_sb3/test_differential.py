"""The yardstick: what `DummyVecEnv` yields, value for value, from every source and mode."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

import sb3compat
from tests.envs import Identity, MakeEnv, script
from tests.lockstep import lockstep
from tests.profiles import examples
from tests.strategies import programs, scripts

pytest.importorskip("stable_baselines3", reason="the yardstick is SB3's DummyVecEnv")

MODES = list(AutoresetMode)
Build = Callable[[list[MakeEnv]], VectorEnv[Any, Any, Any]]

mode_of = pytest.mark.parametrize("mode", MODES, ids=[mode.name for mode in MODES])
with_processes = settings(max_examples=examples(12))


def sync(mode: AutoresetMode, **kwargs: Any) -> Build:
    return lambda fns: SyncVectorEnv(fns, autoreset_mode=mode, **kwargs)


def parallel(mode: AutoresetMode, **kwargs: Any) -> Build:
    return lambda fns: AsyncVectorEnv(fns, autoreset_mode=mode, **kwargs)


def wrapped(build: Build, layers: int = 1) -> Build:
    def make(fns: list[MakeEnv]) -> VectorEnv[Any, Any, Any]:
        env = build(fns)
        for _ in range(layers):
            env = Identity(env)
        return env

    return make


@mode_of
@given(data=st.data(), n=st.integers(1, 4), copy=st.booleans())
@settings(max_examples=examples(150))
def test_sync_equals_dummy_vec_env(
    mode: AutoresetMode, data: st.DataObject, n: int, copy: bool
) -> None:
    lockstep(data.draw(scripts(shared=True)), n, sync(mode, copy=copy), data.draw(programs(n)))


@mode_of
@pytest.mark.parametrize("shared_memory", [True, False])
@given(data=st.data(), n=st.integers(1, 3), copy=st.booleans())
@with_processes
def test_async_equals_dummy_vec_env(
    mode: AutoresetMode, shared_memory: bool, data: st.DataObject, n: int, copy: bool
) -> None:
    # A worker in SAME_STEP mode resets before it sends: there, reused arrays are refused.
    sole = mode != AutoresetMode.SAME_STEP
    chosen = data.draw(scripts(reuse=sole, shared=sole))
    build = parallel(mode, copy=copy, shared_memory=shared_memory)
    lockstep(chosen, n, build, data.draw(programs(n)))


@mode_of
@given(data=st.data(), n=st.integers(1, 4), copy=st.booleans(), layers=st.integers(1, 2))
@settings(max_examples=examples(150))
def test_wrapped_sync_equals_dummy_vec_env(
    mode: AutoresetMode, data: st.DataObject, n: int, copy: bool, layers: int
) -> None:
    chosen = data.draw(scripts(("none", "plain"), reuse=mode != AutoresetMode.SAME_STEP))
    build = wrapped(sync(mode, copy=copy), layers)
    lockstep(chosen, n, build, data.draw(programs(n)))


@mode_of
@pytest.mark.parametrize("shared_memory", [True, False])
@given(data=st.data(), n=st.integers(1, 3), copy=st.booleans())
@with_processes
def test_wrapped_async_equals_dummy_vec_env(
    mode: AutoresetMode, shared_memory: bool, data: st.DataObject, n: int, copy: bool
) -> None:
    chosen = data.draw(scripts(("none", "plain"), reuse=mode != AutoresetMode.SAME_STEP))
    build = wrapped(parallel(mode, copy=copy, shared_memory=shared_memory))
    lockstep(chosen, n, build, data.draw(programs(n)))


class Twice:
    """A mixin for vector environments with rewards of twice the size."""

    def step(self, actions: Any) -> Any:
        obs, rewards, terminated, truncated, infos = super().step(actions)  # type: ignore[misc]
        return obs, 2 * rewards, terminated, truncated, infos


# No brackets: the classes of Gymnasium 1.1 are not generic.
class TwiceSync(Twice, SyncVectorEnv):  # type: ignore[type-arg,misc]
    """A subclass with the mixin before the class."""


class TwiceAsync(Twice, AsyncVectorEnv):  # type: ignore[type-arg,misc]
    """The same in workers."""


class WaitsTwice(AsyncVectorEnv):  # type: ignore[type-arg]
    """Overrides what `step` calls."""

    def step_wait(self, timeout: Any = None) -> Any:
        obs, rewards, terminated, truncated, infos = super().step_wait(timeout)
        return obs, 2 * rewards, terminated, truncated, infos


def patched(fns: list[MakeEnv], **kwargs: Any) -> VectorEnv[Any, Any, Any]:
    """A method of the instance itself."""
    env: Any = SyncVectorEnv(fns, **kwargs)
    step = SyncVectorEnv.step

    def twice(actions: Any) -> Any:
        obs, rewards, terminated, truncated, infos = step(env, actions)
        return obs, 2 * rewards, terminated, truncated, infos

    env.step = twice
    return env  # type: ignore[no-any-return]


class TwiceRewards(gym.Wrapper[Any, Any, Any, Any]):
    """What the reference does to each sub-environment instead."""

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, 2 * reward, terminated, truncated, info


OVERRIDES: list[Callable[..., Any]] = [TwiceSync, TwiceAsync, WaitsTwice, patched]


@pytest.mark.parametrize("make", OVERRIDES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
@given(data=st.data(), n=st.integers(1, 3), copy=st.booleans(), layers=st.integers(0, 1))
@with_processes
def test_overriding_subclasses_equal_dummy_vec_env(
    mode: AutoresetMode, make: Any, data: st.DataObject, n: int, copy: bool, layers: int
) -> None:
    chosen = data.draw(scripts(("none", "plain"), reuse=False))
    build = wrapped(lambda fns: make(fns, autoreset_mode=mode, copy=copy), layers)
    lockstep(chosen, n, build, data.draw(programs(n)), wrap=TwiceRewards)


@pytest.mark.parametrize("make", OVERRIDES, ids=lambda make: make.__name__)
def test_overriding_subclasses_are_refused_where_their_code_would_be_bypassed(make: Any) -> None:
    for layers in (0, 1):
        env = wrapped(make, layers)([MakeEnv(script(), i) for i in range(2)])
        name = "step_wait" if make is WaitsTwice else "step"
        with pytest.raises(sb3compat.PartialResetError, match=f"{name!r} is overridden"):
            sb3compat.to_sb3(env)
        env.close()


PROGRAM = [
    ("seed", 3),
    ("options", [{"x": 1}, {}]),
    ("reset", None),
    *[("step", number) for number in range(7)],
    ("options", {"x": 2}),
    ("reset", None),
    *[("step", number) for number in range(4)],
]


@mode_of
@pytest.mark.parametrize(
    ("context", "shared_memory"),
    list(itertools.product(["fork", "forkserver", "spawn"], [True, False])),
)
def test_async_start_methods_equal_dummy_vec_env(
    mode: AutoresetMode, context: str, shared_memory: bool
) -> None:
    chosen = script(lengths=(2, 3), endings=("truncated", "both"), infos="wild")
    build = parallel(mode, context=context, shared_memory=shared_memory)
    lockstep(chosen, 2, build, PROGRAM)


@mode_of
@pytest.mark.parametrize("build", [sync, parallel])
def test_images_equal_those_of_dummy_vec_env(
    mode: AutoresetMode, build: Callable[..., Build]
) -> None:
    from gymnasium.spaces import Box

    chosen = script(observation_space=Box(0, 255, (84, 84, 4), np.uint8), lengths=(2, 3))
    lockstep(chosen, 2, build(mode), PROGRAM)


EMPTY = (spaces.Dict({}), spaces.Tuple([]))


@mode_of
@pytest.mark.parametrize("space", EMPTY, ids=["Dict", "Tuple"])
def test_empty_observations_equal_those_of_dummy_vec_env(mode: AutoresetMode, space: Any) -> None:
    program: list[Any] = [("reset", None), *[("step", number) for number in range(4)]]
    chosen = script(observation_space=space, lengths=(2, 3))
    for build in (sync(mode), wrapped(sync(mode)), parallel(mode), wrapped(parallel(mode))):
        lockstep(chosen, 2, build, program)


@pytest.mark.parametrize("space", EMPTY, ids=["Dict", "Tuple"])
def test_empty_actions_equal_those_of_dummy_vec_env(space: Any) -> None:
    # As lists of single actions, which is how DummyVecEnv takes them.
    program: list[Any] = [("reset", None), *[("step", number) for number in (1, 3, 5)]]
    chosen = script(action_space=space, lengths=(2, 3))
    for build in (sync(AutoresetMode.NEXT_STEP), parallel(AutoresetMode.NEXT_STEP)):
        lockstep(chosen, 2, build, program)
        with pytest.raises(sb3compat.UnsupportedSpaceError, match="at least one part"):
            lockstep(chosen, 2, wrapped(build), program)
