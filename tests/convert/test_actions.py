"""Batches of actions: checked, cast, and split by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, iterate
from hypothesis import given
from hypothesis import strategies as st

from sb3compat._convert.actions import Actions, action_batch, action_rows
from tests.lockstep import same
from tests.strategies import any_space

BOX = spaces.Box(-1, 1, (2,), np.float32)
DICT = spaces.Dict({"a": spaces.Discrete(3), "b": BOX})
TUPLE = spaces.Tuple([spaces.Discrete(3), BOX])
DISCRETE = spaces.Discrete(3)
ONE = {"a": 1, "b": np.zeros(2, np.float32)}


@pytest.mark.parametrize(
    ("space", "actions", "message"),
    [
        (DISCRETE, np.array([0, 1, 2]), r"actions.shape=\(2,\).*got actions.shape=\(3,\)"),
        (DISCRETE, 1, r"got actions=1"),
        (DISCRETE, [0], "Expected 2 actions.*len"),
        (DISCRETE, [0, [1, 2]], "one shape"),
        (DISCRETE, ["left", "right"], r"dtype=<U5\. Nothing was stepped\. Pass numbers"),
        (DISCRETE, np.array([0.5, 1.0]), "without loss, got actions.dtype=float64"),
        (BOX, np.zeros((2, 3), np.float32), r"\(2, 2\).*got actions.shape=\(2, 3\)"),
        (DICT, np.zeros(2), "a dict with the keys"),
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


@given(space=any_space(), n=st.integers(1, 3))
def test_rows_of_a_batch_equal_those_of_gymnasium(space: spaces.Space[Any], n: int) -> None:
    space = spaces.Dict({"nested": space, "one": BOX})
    batch = batch_space(space, n).sample()
    expected = list(iterate(batch_space(space, n), batch))
    same(action_rows(space, batch, n), expected)
    same(action_rows(space, expected, n), expected)


UNBATCHED = [
    spaces.Text(3),
    spaces.Sequence(DISCRETE),
    spaces.Sequence(BOX, stack=True),
    spaces.OneOf([DISCRETE, DISCRETE]),
    spaces.OneOf([DISCRETE, BOX]),
    spaces.Graph(BOX, DISCRETE),
]


@given(space=any_space() | st.sampled_from(UNBATCHED), n=st.integers(1, 3), seed=st.integers(0, 99))
def test_actions_for_a_vec_env_are_those_that_gymnasium_gives_each_row(
    space: spaces.Space[Any], n: int, seed: int
) -> None:
    batched_space = batch_space(space, n)
    batched_space.seed(seed)
    batch = batched_space.sample()
    expected = list(iterate(batched_space, batch))
    same(list(action_batch(space, batch, n)), expected)
    if isinstance(space, spaces.Tuple) and len(space.spaces) == n > 1:
        with pytest.raises(ValueError, match="either parts or actions"):
            action_batch(space, expected, n)
    else:
        same(list(action_batch(space, expected, n)), expected)


def test_ragged_actions_for_a_vec_env_are_refused() -> None:
    with pytest.raises(ValueError, match="one shape in all rows"):
        action_batch(BOX, [np.zeros(2), np.zeros(3)], 2)


@pytest.mark.parametrize("space", [spaces.Dict({}), spaces.Tuple([])], ids=["Dict", "Tuple"])
def test_empty_actions_are_one_for_each_row(space: Any) -> None:
    empty: Any = {} if isinstance(space, spaces.Dict) else ()
    actions = Actions(space, 3)
    for given_actions in (empty, [empty] * 3):
        assert actions.rows(actions.prepare(given_actions)) == [empty] * 3
        assert action_rows(space, given_actions, 3) == [empty] * 3


def test_tuple_of_tuples_that_may_be_either_is_refused() -> None:
    space = spaces.Tuple([spaces.Discrete(3), spaces.Discrete(3)])
    with pytest.raises(ValueError, match=r"which may be either: \(\(0, 1\), \(0, 1\)\)\. Nothing"):
        Actions(space, 2).prepare(((0, 1), (0, 1)))
    for given_as in ([(0, 1), (0, 1)], (np.array([0, 0]), np.array([1, 1]))):
        rows = Actions(space, 2)
        assert rows.rows(rows.prepare(given_as)) == [(0, 1), (0, 1)]
