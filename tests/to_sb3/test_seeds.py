"""Seeds that an environment takes in a reset, where it does not take all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import sb3compat
from sb3compat._to_sb3.seeds import check_seed, seed_within
from tests.envs import Identity, fns
from tests.native import UnknownEnv
from tests.to_sb3.driving import SAME_STEP


class SmallSeeds(UnknownEnv):
    """Takes seeds below 100."""


class ResetSmall:
    largest_seed = 99

    def __call__(self, env: Any, mask: Any) -> Any:
        return env.reset_rows(mask, None, None)


sb3compat.register_partial_reset(SmallSeeds, ResetSmall())


def small(num_envs: int = 3) -> SmallSeeds:
    return SmallSeeds(fns(num_envs), SAME_STEP)


def test_limit_holds_for_a_subclass_with_a_function_of_its_own() -> None:
    class Derived(SmallSeeds):
        def step(self, actions: Any) -> Any:
            return super().step(actions)

    sb3compat.register_partial_reset(Derived, sb3compat.reset_with_mask)
    with pytest.raises(ValueError, match="seed from 0 to 97"):
        check_seed(Derived(fns(3), SAME_STEP), 98)


def test_random_seeds_are_those_that_the_environment_takes() -> None:
    for seed in range(50):
        np.random.seed(seed)
        env = sb3compat.to_sb3(small())
        seeds = env.seed(None)
        assert seeds == [seeds[0], seeds[0] + 1, seeds[0] + 2]
        assert seeds[0] >= 0
        assert seeds[-1] <= 99
        env.reset()
    drawn = {seed_within(small(), None) for _ in range(2000)}
    assert min(drawn) == 0  # type: ignore[type-var]
    assert max(drawn) == 97  # type: ignore[type-var]


@pytest.mark.parametrize("seed", [-1, 98, 2**32, np.int64(98)])
def test_seeds_that_the_environment_does_not_take_are_refused(seed: Any) -> None:
    env = sb3compat.to_sb3(Identity(small()))
    env.seed(5)
    with pytest.raises(ValueError, match=rf"seed from 0 to 97.*no seeds above 99.*got seed={seed}"):
        env.seed(seed)
    env.reset()
    assert [info["seed"] for info in env.reset_infos] == [5, 6, 7]  # nothing was changed


@pytest.mark.parametrize("seed", [0, 97, np.int64(97)])
def test_the_smallest_and_largest_seeds_arrive(seed: Any) -> None:
    env = sb3compat.to_sb3(small())
    env.seed(seed)
    env.reset()
    assert [info["seed"] for info in env.reset_infos] == [seed, seed + 1, seed + 2]


def test_seeds_without_a_limit_stay_as_they_are() -> None:
    env = SyncVectorEnv(fns())
    check_seed(env, 2**80)
    assert [seed_within(env, seed) for seed in (None, -1, 2**80)] == [None, -1, 2**80]


@pytest.mark.parametrize("seeds", [[5, 77, 9], [None, 6, 7], [5, None, 7]])
def test_seeds_that_one_seed_cannot_give_are_refused(seeds: Any) -> None:
    env: Any = sb3compat.to_sb3(UnknownEnv(fns(3), SAME_STEP))
    env._seeds = seeds  # as `to_gymnasium` sets a list of seeds
    with pytest.raises(sb3compat.ConversionError, match="seeds that count up from the first"):
        env.reset()
