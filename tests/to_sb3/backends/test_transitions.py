"""CartPole of three libraries in NEXT_STEP mode, held against CartPole's own equations.

There is no reference to run in lockstep: all rows share one generator. But each observation follows
from the one before, so a step that is lost, invented, or taken by another row's action shows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import sb3compat
from tests.lockstep import same
from tests.to_sb3.backends.cartpole import (
    Policy,
    always,
    at_random,
    check_cartpole,
    native,
    run,
)
from tests.to_sb3.backends.libraries import jax_env, pool


class Library(NamedTuple):
    """Where a CartPole comes from.

    Attributes:
        make: Makes the vector environment, by the number of rows and the limit of an episode.
        takes_seeds: Whether its reset takes a seed; if not, `make` does.
        kwargs: Of `check_cartpole`.
        steps: How many are enough to see several endings of each row.
    """

    make: Callable[..., Any]
    takes_seeds: bool
    kwargs: dict[str, Any]
    steps: int


LIBRARIES = {
    "gymnasium": Library(native, True, {}, 400),
    # Its authors added the mass and the length of the pole where they meant to multiply.
    "jax": Library(partial(jax_env, "CartPole-v1"), True, {"polemass_length": 0.6}, 60),
    # At both ends at once, EnvPool itself says that the episode was truncated, and no more.
    "envpool": Library(pool, False, {"limit_wins": True}, 300),
}


def case(name: str, *others: Any) -> Any:
    """EnvPool imports JAX as well."""
    marks = [] if name == "gymnasium" else [pytest.mark.jax]
    return pytest.param(LIBRARIES[name], *others, marks=marks, id=name)


every_library = pytest.mark.parametrize("library", [case(name) for name in LIBRARIES])


def adapted(library: Library, num_envs: int, limit: int = 500, seed: int = 1) -> Any:
    if not library.takes_seeds:
        return sb3compat.to_sb3(library.make(num_envs, limit, seed=seed))
    env = sb3compat.to_sb3(library.make(num_envs, limit))
    env.seed(seed)
    return env


BOTH, TERMINATED, TRUNCATED = {True, False}, {False}, {True}


@pytest.mark.parametrize(
    ("library", "policy", "num_envs", "limit", "kinds"),
    [
        case("gymnasium", at_random(7), 7, 18, BOTH),
        case("gymnasium", at_random(1), 1, 18, BOTH),
        # All rows end with each step.
        case("gymnasium", at_random(3), 3, 1, TRUNCATED),
        # Some episodes end in both ways at once; SB3 must not bootstrap these.
        case("gymnasium", always(1), 5, 9, BOTH),
        case("gymnasium", always(0), 5, 500, TERMINATED),
        case("jax", at_random(4), 4, 12, BOTH),
        case("jax", always(1), 4, 8, BOTH),
        case("jax", always(0), 4, 500, TERMINATED),
        case("envpool", at_random(4), 4, 15, BOTH),
        case("envpool", at_random(4), 4, 500, TERMINATED),
    ],
)
def test_transitions_are_true(
    library: Library, policy: Policy, num_envs: int, limit: int, kinds: set[bool]
) -> None:
    env = adapted(library, num_envs, limit)
    check_cartpole(env, policy, 3, limit, **library.kwargs)  # then a reset within an episode
    endings = check_cartpole(env, policy, library.steps, limit, **library.kwargs)
    assert {ending.truncated for ending in endings} == kinds
    assert {ending.row for ending in endings} == set(range(num_envs))
    if limit == 9:
        assert {ending.truncated for ending in endings if ending.length == limit} == BOTH


@every_library
@pytest.mark.parametrize("wrapped", [False, True])
def test_environment_used_before_can_be_adapted(library: Library, wrapped: bool) -> None:
    """Its rows have ended; an autoreset is pending, also after JAX's own reset."""
    source = library.make(3, 4)
    source.reset()
    for _ in range(4):
        source.step(np.zeros(3, int))
    env = sb3compat.to_sb3(RecordEpisodeStatistics(source) if wrapped else source)
    check_cartpole(env, at_random(3), 9, 4, **library.kwargs)


@every_library
def test_stream_follows_from_the_seed_whatever_is_overwritten(library: Library) -> None:
    first, again = (adapted(library, 3, 6, seed=5) for _ in range(2))
    expected = run(first, 20)
    same(run(again, 20, scribble=True), expected, "the stream of the same seed, overwritten")
    other = adapted(library, 3, 6, seed=6)
    assert not np.array_equal(other.reset(), expected[0][0])
