"""Seeds and options of a reset: row by row as in `SyncVectorEnv`, or refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

import sb3compat
from tests.envs import Identity, fns
from tests.handwritten import CountingVecEnv
from tests.lockstep import same
from tests.lockstep_back import dummy

vec_envs: Any = pytest.importorskip("stable_baselines3.common.vec_env")

N = 3
Build = Callable[[list[Any]], Any]


# To the sub-environments of all of these, seeds and options are passed row by row.
SOURCES: dict[str, Build] = {
    "plain": dummy,
    "wrapped": lambda made: vec_envs.VecMonitor(dummy(made)),
    "wrapped twice": lambda made: vec_envs.VecCheckNan(vec_envs.VecMonitor(dummy(made))),
    "adapter": lambda made: sb3compat.to_sb3(SyncVectorEnv(made)),
    "wrapped adapter": lambda made: vec_envs.VecMonitor(sb3compat.to_sb3(SyncVectorEnv(made))),
    "adapter of a wrapper": lambda made: sb3compat.to_sb3(Identity(SyncVectorEnv(made))),
}
source_of = pytest.mark.parametrize("build", SOURCES.values(), ids=SOURCES)


def native() -> Any:
    return sb3compat.to_sb3(gym.make_vec("CartPole-v1", num_envs=N))


class OneGenerator(vec_envs.VecMonitor):
    """Takes the seed of the first row for all of them."""

    def seed(self, seed: Any = None) -> Any:
        return self.venv.seed(seed)


ONE_SEED: dict[str, Callable[[], Any]] = {
    "native": native,
    "wrapped native": lambda: vec_envs.VecMonitor(native()),
    "seed method of a wrapper": lambda: OneGenerator(dummy(fns(N))),
    "handwritten": lambda: CountingVecEnv(N),
}


@pytest.mark.parametrize("make", ONE_SEED.values(), ids=ONE_SEED)
def test_seeds_by_row_are_refused_where_they_would_not_reach_the_rows(make: Any) -> None:
    ours = sb3compat.to_gymnasium(make(), autoreset_mode="Disabled")
    ours.reset(seed=5)
    for seed in ([5, 77, 9], [None, 5, None], [5, None, None], (7, 6, 5)):
        with pytest.raises(ValueError, match=r"Expected one int as seed.*Nothing was reset"):
            ours.reset(seed=seed)
    # The refused resets were none: it goes on.
    ours.step(np.zeros(N, np.int64))


def test_seeds_that_count_up_are_the_one_seed_of_a_native_environment() -> None:
    ours = sb3compat.to_gymnasium(native(), autoreset_mode="Disabled")
    same(ours.reset(seed=5)[0], ours.reset(seed=[5, 6, 7])[0])


class Options(gym.Env[Any, Any]):
    """Draws its observation from the generator among the options, and writes into them."""

    observation_space = spaces.Box(0, 1, (1,), np.float64)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        options["count"][0] += 1
        options["added"] = True
        return np.array([options["rng"].random()]), {"count": options["count"][0]}

    def step(self, action: Any) -> Any:
        return np.zeros(1), 0.0, False, False, {}


@source_of
def test_options_are_the_very_objects_of_the_caller(build: Build) -> None:
    reference = SyncVectorEnv([Options] * N)
    ours = sb3compat.to_gymnasium(build([Options] * N), autoreset_mode="Disabled")
    results = []
    for env in (ours, reference):
        # A lock cannot be copied.
        held = {"rng": np.random.default_rng(0), "count": [0], "lock": threading.Lock()}
        options = dict(held)
        results.append([env.reset(options=options) for _ in range(3)])
        if env is ours:
            assert options == held
    same(*results)


def told(vec_env: Any) -> list[list[Any]]:
    """The options of two resets, for each row."""
    resets = [[vec_env.reset(), list(vec_env.unwrapped.reset_infos)][1] for _ in range(2)]
    return [[info.get("option") for info in infos] for infos in resets]


def round_trip(vec_env: Any) -> Any:
    return sb3compat.to_sb3(Identity(sb3compat.to_gymnasium(vec_env)))


@source_of
@pytest.mark.parametrize(
    "then", [(), (None,), ({},), ([None, {"x": 8}, None],), ([{}] * N,), ({"x": 9}, None)]
)
def test_options_replace_those_that_wait_inside(build: Build, then: tuple[Any, ...]) -> None:
    made = fns(N)
    direct, inner = dummy(made), build(made)
    for vec_env in (direct, inner):
        vec_env.set_options([{"x": 1}, {"x": 2}, {}])
    outer = round_trip(inner)
    for options in then:
        direct.set_options(options)
        outer.set_options(options)
    assert told(outer) == told(direct)
    for vec_env in (direct, outer):
        vec_env.set_options({"x": 1})
    twice = round_trip(outer)  # with the adapter inside, as options wait there
    for options in then:
        direct.set_options(options)
        twice.set_options(options)
    assert told(twice) == told(direct)
