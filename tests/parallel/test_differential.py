"""The yardstick: what `DummyVecEnv` yields, over all kinds of parts and numbers of workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Tuple
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.envs import MakeEnv, script
from tests.lockstep import lockstep
from tests.parallel.teams import KINDS, forked, parts_of, unshifted
from tests.profiles import examples
from tests.strategies import programs, scripts

pytest.importorskip("stable_baselines3", reason="the yardstick is SB3's DummyVecEnv")

Shape = Sequence[tuple[str, int]]
Build = Callable[[list[MakeEnv]], Any]


def team(workers: int, shape: Shape | None = None) -> Build:
    return lambda fns: forked(fns if shape is None else parts_of(fns, shape), workers)


PROGRAM = [
    ("seed", 3),
    ("options", [{"x": 1}, {}, {"x": 2}, {}, {"x": 3}]),
    ("reset", None),
    *[("step", number) for number in range(7)],
    ("options", {"x": 2}),
    ("reset", None),
    *[("step", number) for number in range(4)],
]


@given(data=st.data(), n=st.integers(1, 5), workers=st.integers(1, 5))
@settings(max_examples=examples(200))
def test_single_environments_equal_dummy_vec_env(data: st.DataObject, n: int, workers: int) -> None:
    chosen = data.draw(scripts())
    lockstep(chosen, n, team(workers), data.draw(programs(n)))


@given(data=st.data(), workers=st.integers(1, 3))
@settings(max_examples=examples(100))
def test_parts_of_every_kind_equal_dummy_vec_env(data: st.DataObject, workers: int) -> None:
    kind = st.sampled_from(["single", *KINDS])
    shape = data.draw(st.lists(st.tuples(kind, st.integers(1, 2)), min_size=1, max_size=3))
    n = sum(count for _, count in shape)
    # Infos of vector environments below a wrapper come as a dict of arrays.
    plain = any(kind == "wrapped" for kind, _ in shape)
    reuse = all(kind in ("single", "sync") for kind, _ in shape)
    infos = ("none", "plain") if plain else ("none", "plain", "wild")
    # A nested one presents spaces from 0, which are not those of a single environment.
    nested = any(kind == "nested" for kind, _ in shape)
    chosen = data.draw((unshifted if nested else scripts)(infos, reuse=reuse))
    lockstep(chosen, n, team(workers, shape), data.draw(programs(n)))


@pytest.mark.parametrize("kind", KINDS)
def test_part_of_each_kind_equals_dummy_vec_env(kind: str) -> None:
    chosen = script(lengths=(2, 3), endings=("truncated", "both", "terminated"))
    shape = [("single", 1), (kind, 3), ("single", 1)]
    lockstep(chosen, 5, team(2, shape), PROGRAM)


@pytest.mark.parametrize("start_method", [None, "fork", "forkserver", "spawn"])
def test_start_methods_equal_dummy_vec_env(start_method: str | None) -> None:
    from sb3compat import ParallelVecEnv

    chosen = script(lengths=(2, 3), endings=("truncated", "both"), infos="wild")

    def build(fns: Any) -> Any:
        return ParallelVecEnv(fns, workers=2, start_method=start_method)

    lockstep(chosen, 5, build, PROGRAM)


def test_images_equal_those_of_dummy_vec_env() -> None:
    chosen = script(observation_space=Box(0, 255, (84, 84, 4), np.uint8), lengths=(2, 3))
    lockstep(chosen, 5, team(2), PROGRAM)


@pytest.mark.parametrize("space", [Dict({}), Tuple([])], ids=["Dict", "Tuple"])
def test_empty_observations_equal_those_of_dummy_vec_env(space: Any) -> None:
    chosen = script(observation_space=space, lengths=(2, 3))
    lockstep(chosen, 5, team(2, [("single", 3), ("sync", 2)]), PROGRAM)
