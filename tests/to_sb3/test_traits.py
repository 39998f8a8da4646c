"""What is known of a library's classes: the seeds that they take, and what looks at endings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import sb3compat
from sb3compat._to_sb3.partial_reset import qualified_name
from sb3compat._to_sb3.traits import Traits, check_seed, register_traits, seed_within, traits_of
from tests.envs import Identity, fns
from tests.native import UnknownEnv

SAME_STEP = AutoresetMode.SAME_STEP


class SmallSeeds(UnknownEnv):
    """Takes seeds below 100."""


register_traits(qualified_name(SmallSeeds), Traits(largest_seed=99))


def small(num_envs: int = 3) -> SmallSeeds:
    return SmallSeeds(fns(num_envs), SAME_STEP)


def test_traits_are_those_of_the_nearest_class() -> None:
    class Derived(SmallSeeds):
        pass

    assert traits_of(Derived(fns(), SAME_STEP)).largest_seed == 99
    assert traits_of(UnknownEnv(fns(), SAME_STEP)) == Traits()


def test_random_seeds_are_those_that_the_environment_takes() -> None:
    for seed in range(300):
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
    with pytest.raises(ValueError, match=rf"seed from 0 to 97.*none above 99.*got seed={seed}"):
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


def test_endings_are_looked_at_as_the_environment_gives_them() -> None:
    class Watched(UnknownEnv):
        pass

    seen: list[Any] = []

    class Watch:
        def reset(self, infos: Any) -> None:
            seen.append("reset")

        def step(self, terminations: Any, truncations: Any, infos: Any) -> None:
            seen.append((terminations.tolist(), truncations.tolist(), "shared" in infos))

    def watch(env: Any, mode: AutoresetMode) -> Watch:
        seen.append((type(env), mode))
        return Watch()

    register_traits(qualified_name(Watched), Traits(watch=watch))
    env = sb3compat.to_sb3(Identity(Watched(fns(lengths=(2, 3)), SAME_STEP)))
    env.reset()
    for _ in range(2):
        env.step(np.zeros(2, int))
    assert seen == [
        (Watched, SAME_STEP),
        "reset",
        ([False, False], [False, False], True),
        ([False, True], [False, False], True),
    ]
