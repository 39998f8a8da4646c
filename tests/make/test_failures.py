"""Failures while `make_vec_env` makes an environment, in words that help."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import sb3compat
from tests.envs import ScriptedEnv, script

pytest.importorskip("stable_baselines3.common.vec_env")

FLAT = spaces.Box(-1, 1, (2,), np.float32)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (FLAT, spaces.Box(-1, 1, (2,), np.float64)),
        (spaces.Box(0, 9, (), np.int64), spaces.Discrete(9)),
        (spaces.MultiDiscrete([3, 3]), spaces.MultiDiscrete([3])),
        (spaces.Dict(a=FLAT), spaces.Dict(b=FLAT)),
        (spaces.Tuple([FLAT]), spaces.Tuple([FLAT, FLAT])),
    ],
)
def test_spaces_that_fit_into_no_batch_are_refused_in_our_words(
    first: spaces.Space[Any], second: spaces.Space[Any]
) -> None:
    numbers = iter(range(9))

    def either() -> ScriptedEnv:
        return ScriptedEnv(script(observation_space=second if next(numbers) else first))

    with pytest.raises(sb3compat.UnsupportedSpaceError, match="SyncVectorEnv considers equal"):
        sb3compat.make_vec_env(either, 2)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_error_of_an_environment_is_none_about_spaces(mode: str) -> None:
    def broken() -> Any:
        raise ValueError("Expected all dtypes of spaces to be equal")

    with pytest.raises(ValueError, match="Expected all dtypes of spaces") as caught:
        sb3compat.make_vec_env(broken, 2, vectorization_mode=mode)
    assert type(caught.value) is ValueError


class Own(spaces.Box):
    pass


def test_spaces_of_a_subclass_are_refused_with_the_argument_that_takes_them() -> None:
    def make() -> ScriptedEnv:
        return ScriptedEnv(script(observation_space=Own(-1, 1, (2,), np.float32)))

    with pytest.raises(sb3compat.UnsupportedSpaceError, match="'observation_mode': 'same'"):
        sb3compat.make_vec_env(make, 2)
    same_mode = {"observation_mode": "same"}
    sb3compat.make_vec_env(make, 2, vec_env_kwargs=same_mode).reset()
