"""How single rows are reset: which registered function holds for an environment."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers import vector

import sb3compat
from sb3compat._convert.arguments import seed_within
from sb3compat._to_sb3 import partial_reset
from sb3compat._to_sb3.partial_reset import partial_reset_of
from tests.envs import Identity, fns, overriding
from tests.native import NativeEnv, UnknownEnv, reset_native
from tests.to_sb3.driving import DISABLED, NEXT_STEP, SAME_STEP, Changed, step


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


@pytest.mark.parametrize("on_instance", [True, False])
@pytest.mark.parametrize("name", ["step", "reset", "_put"])
def test_function_does_not_hold_for_a_subclass_that_overrides_what_it_replaces(
    name: str, on_instance: bool
) -> None:
    env, other = (NativeEnv(fns(lengths=(2, 3)), NEXT_STEP) for _ in range(2))
    for each in (env, other):
        overriding(each, name, on_instance)
        assert partial_reset_of(each) is None
    with pytest.raises(sb3compat.PartialResetError, match=f"NativeEnv cannot be used.*'{name}'"):
        sb3compat.to_sb3(env)
    if not on_instance:
        sb3compat.register_partial_reset(type(env), reset_native)
        sb3compat.to_sb3(env).reset()
        # It holds for this class, not for another one of the same name.
        assert partial_reset_of(other) is None


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


@pytest.mark.parametrize("cls", [SyncVectorEnv, AsyncVectorEnv])
def test_function_for_the_classes_of_gymnasium_is_refused_as_it_would_not_be_called(
    cls: Any,
) -> None:
    with pytest.raises(TypeError, match=f"class of your own, got cls={cls.__name__}"):
        sb3compat.register_partial_reset(cls, sb3compat.reset_with_mask)


def test_function_of_the_user_comes_before_that_of_this_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    env: Any = gym.make_vec("CartPole-v1", 2, vectorization_mode="vector_entry_point").unwrapped
    assert type(partial_reset_of(env)).__module__ == "sb3compat._to_sb3.backends.cartpole"
    monkeypatch.setattr(partial_reset, "_REGISTRY", dict(partial_reset._REGISTRY))
    sb3compat.register_partial_reset(type(env), sb3compat.reset_with_mask)
    assert partial_reset_of(env) is sb3compat.reset_with_mask


def test_functions_for_classes_that_a_function_has_made_are_not_for_workers() -> None:
    class Made(UnknownEnv): ...

    sb3compat.register_partial_reset(Made, sb3compat.reset_with_mask)
    names = partial_reset.registered_by_users().keys()
    assert f"{__name__}.SmallSeeds" in names
    assert not any("<locals>" in name for name in names)


# Seeds, where the environment does not take all.


class SmallSeeds(UnknownEnv):
    """Takes seeds below 100."""


class ResetSmall:
    largest_seed = 99

    def __call__(self, env: Any, mask: Any) -> Any:
        return env.reset_rows(mask, None, None)


sb3compat.register_partial_reset(SmallSeeds, ResetSmall())


def small(cls: Any = SmallSeeds) -> Any:
    return cls(fns(3), SAME_STEP)


def test_random_seeds_are_those_that_the_environment_takes() -> None:
    np.random.seed(3)
    drawn = {seed_within(small(), 99, None) for _ in range(2000)}
    assert drawn <= set(range(98))
    assert {0, 97} <= drawn


@pytest.mark.parametrize(
    "build",
    [
        lambda: sb3compat.to_sb3(Identity(small())),
        lambda: sb3compat.ParallelVecEnv([small], start_method="fork"),
        lambda: sb3compat.ParallelVecEnv([lambda: sb3compat.to_sb3(small())], start_method="fork"),
    ],
    ids=["to_sb3", "part", "adapted part"],
)
def test_seeds_that_the_environment_does_not_take_are_refused(build: Any) -> None:
    env = build()
    for seed in (0, np.int64(97)):
        env.seed(seed)
        for wrong in (-1, 98, 2**32, np.int64(98)):
            text = rf"seed from 0 to 97.*no seeds above 99.*got seed={wrong}"
            with pytest.raises(ValueError, match=text):
                env.seed(wrong)
        env.reset()  # nothing was changed
        assert [info["seed"] for info in env.reset_infos] == [seed, seed + 1, seed + 2]
    np.random.seed(0)
    assert 0 <= env.seed(None)[0] < 98
    env.close()
    env = sb3compat.to_sb3(UnknownEnv(fns(), SAME_STEP))
    assert [env.seed(seed) for seed in (-1, 2**80)] == [[-1, 0], [2**80, 2**80 + 1]]


def test_limit_holds_for_a_subclass_with_a_function_of_its_own() -> None:
    class Derived(SmallSeeds):
        def step(self, actions: Any) -> Any:
            return super().step(actions)

    sb3compat.register_partial_reset(Derived, sb3compat.reset_with_mask)
    env = sb3compat.to_sb3(small(Derived))
    env._seeds = [98, 99, 100]  # as `to_gymnasium` sets a list of seeds
    with pytest.raises(ValueError, match="seed from 0 to 97"):
        env.reset()


@pytest.mark.parametrize("seeds", [[5, 77, 9], [None, 6, 7], [5, None, 7]])
def test_seeds_that_one_seed_cannot_give_are_refused(seeds: Any) -> None:
    env: Any = sb3compat.to_sb3(UnknownEnv(fns(3), SAME_STEP))
    env._seeds = seeds
    with pytest.raises(sb3compat.ConversionError, match="seeds that count up from the first"):
        env.reset()


def test_a_vec_env_has_no_masked_reset() -> None:
    env = sb3compat.to_sb3(gym.make_vec("CartPole-v1", num_envs=2))
    with pytest.raises(sb3compat.UnsupportedEnvError, match="pass the VectorEnv inside it"):
        sb3compat.reset_with_mask(env, np.array([True, False]))


class IgnoresMasks(UnknownEnv):
    """Resets all rows, whatever options it gets that it does not know."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return self.reset_rows(np.ones(self.num_envs, np.bool_), seed, {})


class Noisy(UnknownEnv):
    """Returns other numbers for the same state each time."""

    def reset_rows(self, mask: Any, seed: Any, options: Any) -> Any:
        observations, infos = super().reset_rows(mask, seed, options)
        self._turn += 1
        return observations + np.float32(self._turn), infos


def ending_row_0(env: Any) -> Any:
    """Its environment ends no episode here."""
    return Changed(env, step=lambda *r: (*r[:3], r[3] | [True, False, False], r[4]))


@pytest.mark.parametrize(
    "wrap",
    [lambda env: env, vector.RecordEpisodeStatistics, Identity, ending_row_0],
    ids=["bare", "statistics", "identity", "ending"],
)
@pytest.mark.parametrize("cls", [IgnoresMasks, Noisy])
def test_disabled_environment_that_changes_other_rows_at_a_reset_is_refused(
    cls: Any, wrap: Any
) -> None:
    env = sb3compat.to_sb3(wrap(cls(fns(3, lengths=(2, 3, 5)), DISABLED)))
    env.reset()
    with pytest.raises(sb3compat.PartialResetError, match="ignores the mask, register"):  # noqa: PT012
        for _ in range(4):
            step(env)


def test_registered_function_may_return_anything_for_other_rows() -> None:
    class Vouched(Noisy): ...

    sb3compat.register_partial_reset(Vouched, sb3compat.reset_with_mask)
    env = sb3compat.to_sb3(Vouched(fns(3, lengths=(2, 3, 5)), DISABLED))
    env.reset()
    assert any(step(env)[2].any() for _ in range(5))


class ClearsItsMask(UnknownEnv):
    """Takes the mask for its own."""

    def reset_rows(self, mask: Any, seed: Any, options: Any) -> Any:
        result = super().reset_rows(mask, seed, options)
        mask[:] = False
        return result


@pytest.mark.parametrize("wrap", [lambda env: env, Identity])
def test_environment_may_change_the_mask_that_it_gets(wrap: Any) -> None:
    env = sb3compat.to_sb3(wrap(ClearsItsMask(fns(3, lengths=(2, 3, 5)), DISABLED)))
    env.reset()
    assert any(step(env)[2].any() for _ in range(5))
