"""Seeds of single rows."""

from __future__ import annotations

from typing import Any

import pytest

from sb3compat._to_gymnasium.seeds import counts_up, pass_seeds, rows_take_seeds, with_waiting
from tests.envs import fns

vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")


@pytest.mark.parametrize(
    ("seeds", "counting"), [([3, 4], True), ([3], True), ([None, 4], False), ([3, 3], False)]
)
def test_counting_up(seeds: Any, counting: bool) -> None:
    assert counts_up(seeds) is counting


@pytest.mark.parametrize("waits", [None, 40])
@pytest.mark.parametrize("seeds", [[None, None], [None, 5], [None, 41], [3, 4], [8, 3]])
def test_rows_without_a_seed_keep_what_waits(seeds: Any, waits: int | None) -> None:
    env = vec_env.VecMonitor(vec_env.DummyVecEnv(fns(2, infos="wild")))
    assert rows_take_seeds(env)
    if waits is not None:
        env.seed(waits)
    expected = [
        (None if waits is None else waits + i) if seed is None else seed
        for i, seed in enumerate(seeds)
    ]
    assert with_waiting(env.unwrapped, seeds) == expected
    pass_seeds(env, env.unwrapped, seeds)
    env.reset()
    for info, seed in zip(env.unwrapped.reset_infos, expected, strict=True):
        assert seed in (None, info["seed"])
