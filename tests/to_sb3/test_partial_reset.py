"""How single rows are reset: which registered function holds for an environment."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import sb3compat
from sb3compat._to_sb3 import partial_reset
from sb3compat._to_sb3.partial_reset import partial_reset_of
from tests.envs import Identity, fns
from tests.native import NativeEnv, UnknownEnv, reset_native
from tests.to_sb3.driving import DISABLED, NEXT_STEP, SAME_STEP, step


def test_function_of_the_nearest_class_is_used() -> None:
    class Derived(NativeEnv):
        pass

    class Own(NativeEnv):
        pass

    def other(env: Any, mask: Any) -> Any:
        return reset_native(env, mask)

    sb3compat.register_partial_reset(Own, other)
    assert partial_reset_of(Derived(fns(), NEXT_STEP)) is reset_native
    assert partial_reset_of(Own(fns(), NEXT_STEP)) is other
    assert partial_reset_of(UnknownEnv(fns(), NEXT_STEP)) is None
    assert partial_reset_of(SyncVectorEnv(fns())) is sb3compat.reset_with_mask


OVERRIDES = ("step", "reset", "_put", "an instance's step")


def overriding(name: str, mode: AutoresetMode) -> Any:
    """An environment that overrides what the registered function replaces, and counts the calls."""
    calls: list[str] = []

    class Overrides(NativeEnv):
        pass

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        return getattr(NativeEnv, name)(self, *args, **kwargs)

    if name in OVERRIDES[:3]:
        setattr(Overrides, name, counted)
    env: Any = Overrides(fns(lengths=(2, 3)), mode)
    if name not in OVERRIDES[:3]:
        name = "step"
        env.step = counted.__get__(env)
    env.calls = calls
    return env


@pytest.mark.parametrize("name", OVERRIDES)
def test_function_does_not_hold_for_a_subclass_that_overrides_what_it_replaces(name: str) -> None:
    env = overriding(name, NEXT_STEP)
    assert partial_reset_of(env) is None
    method = name.rpartition(" ")[2]
    with pytest.raises(sb3compat.PartialResetError, match=f"NativeEnv does not hold.*'{method}'"):
        sb3compat.to_sb3(env)
    if name != OVERRIDES[3]:
        sb3compat.register_partial_reset(type(env), reset_native)
        sb3compat.to_sb3(env).reset()
        # It holds for this class, not for another one of the same name.
        assert partial_reset_of(overriding(name, NEXT_STEP)) is None


@pytest.mark.parametrize("mode", [SAME_STEP, DISABLED])
@pytest.mark.parametrize("name", OVERRIDES)
def test_overridden_methods_are_called(name: str, mode: AutoresetMode) -> None:
    source = overriding(name, mode)
    env = sb3compat.to_sb3(source)
    env.reset()
    for _ in range(6):
        step(env)
    # Two rows end alone, and both together once. In DISABLED mode, the adapter resets them.
    within = mode == DISABLED
    expected = {"reset": 1 + 3 * within, "_put": 2 + 6 * 2 + 4 * within}
    assert source.calls.count(name.rpartition(" ")[2]) == expected.get(name, 6)


def test_function_registered_for_a_subclass_of_sync_is_used() -> None:
    class Counting(SyncVectorEnv):
        resets = 0

        def step(self, actions: Any) -> Any:
            return super().step(actions)

    @sb3compat.register_partial_reset(Counting)
    def reset_counting(env: Any, mask: Any) -> Any:
        env.resets += int(mask.sum())
        return sb3compat.reset_with_mask(env, mask)

    source = Counting(fns(lengths=(2,)))
    env = sb3compat.to_sb3(source)
    env.reset()
    for _ in range(4):
        step(env)
    assert source.resets == 4


@pytest.mark.parametrize(
    ("cls", "function", "message"),
    [
        ("CartPole-v1", None, "subclass of gymnasium.vector.VectorEnv"),
        (gym.Env, None, "subclass of gymnasium.vector.VectorEnv"),
        (Identity, None, "wrapper"),
        (UnknownEnv, 3, "Expected a function, got function=3"),
    ],
)
def test_wrong_registrations_are_refused(cls: Any, function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        sb3compat.register_partial_reset(cls, function)


def test_function_of_the_user_comes_before_that_of_this_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    env: Any = gym.make_vec("CartPole-v1", 2, vectorization_mode="vector_entry_point").unwrapped
    assert type(partial_reset_of(env)).__module__ == "sb3compat._to_sb3.backends.cartpole"
    monkeypatch.setattr(partial_reset, "_REGISTRY", dict(partial_reset._REGISTRY))
    sb3compat.register_partial_reset(type(env), sb3compat.reset_with_mask)
    assert partial_reset_of(env) is sb3compat.reset_with_mask
