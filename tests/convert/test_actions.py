"""Batches of actions: checked, cast, and split by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from hypothesis import given
from hypothesis import strategies as st

from sb3compat._convert.actions import Actions
from tests.lockstep import batched, from_start, same
from tests.strategies import any_space

BOX = spaces.Box(-1, 1, (2,), np.float32)


DICT = spaces.Dict({"a": spaces.Discrete(3), "b": BOX})
TUPLE = spaces.Tuple([spaces.Discrete(3), BOX])
DISCRETE = spaces.Discrete(3)
ONE = {"a": 1, "b": np.zeros(2, np.float32)}


@given(space=any_space(), n=st.integers(1, 3), as_list=st.booleans())
def test_actions_arrive_in_the_form_of_the_space(
    space: spaces.Space[Any], n: int, as_list: bool
) -> None:
    actions = Actions(space, n)
    chosen = [actions.presented.sample() for _ in range(n)]
    batch = actions.prepare(chosen if as_list else batched(space, chosen))
    rows = actions.rows(batch)
    same(rows, [from_start(space, action) for action in chosen])
    assert all(row in space for row in rows)
    assert actions.pack(batch) in batch_space(space, n)


@pytest.mark.parametrize(
    ("space", "actions", "message"),
    [
        (DISCRETE, np.array([0, 1, 2]), r"actions.shape=\(2,\).*got actions.shape=\(3,\)"),
        (DISCRETE, np.array([[0], [1]]), r"got actions.shape=\(2, 1\)"),
        (DISCRETE, 1, r"got actions.shape=\(\)"),
        (DISCRETE, [0], "Expected 2 actions.*len"),
        (DISCRETE, [0, [1, 2]], "one shape"),
        (DISCRETE, np.array([0.5, 1.0]), "without loss, got actions.dtype=float64"),
        (DISCRETE, None, r"got actions.shape=\(\)"),
        (BOX, np.zeros((2, 3), np.float32), r"\(2, 2\).*got actions.shape=\(2, 3\)"),
        (BOX, np.zeros((2,), np.float32), r"got actions.shape=\(2,\)"),
        (DICT, np.zeros(2), "a dict with the keys"),
        (DICT, {"a": np.array([0, 1])}, "a dict with the keys"),
        (DICT, {"a": np.array([0, 1]), "c": np.zeros((2, 2))}, r"missing: \['b'\]"),
        (DICT, {"a": np.array([0, 1, 2]), "b": np.zeros((2, 2))}, r"actions\['a'\].shape=\(2,\)"),
        (DICT, [ONE, ONE, ONE], "Expected 2 actions"),
        (DICT, [ONE, {"a": 1}], r"actions\[1\] to be a dict"),
        (TUPLE, (np.array([0, 1]),), "a tuple with the keys"),
        (TUPLE, np.zeros((2, 2)), "a tuple"),
    ],
)
def test_actions_that_do_not_fit_are_refused(space: Any, actions: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Actions(space, 2).prepare(actions)
