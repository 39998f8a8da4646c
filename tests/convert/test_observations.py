from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from hypothesis import given
from hypothesis import strategies as st

from sb3compat._convert.actions import Actions
from sb3compat._convert.arrays import cast_safely
from sb3compat._convert.observations import Observations
from sb3compat.errors import ConversionError, UnsupportedSpaceError
from tests.lockstep import batched, from_start, same
from tests.strategies import any_space

BOX = spaces.Box(-1, 1, (2,), np.float32)


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
    ("values", "target", "safe"),
    [
        (np.array([1, 0], np.int64), np.int8, True),
        (np.array([300], np.int64), np.int8, False),  # same_kind would wrap it to 44
        (np.array([-1], np.int64), np.uint8, False),
        (np.array([2**63], np.uint64), np.int64, False),
        (np.array([1.0, 0.0], np.float32), np.int8, True),  # what SB3 sends for MultiBinary
        (np.array([0.5]), np.int64, False),
        (np.array([np.nan]), np.int64, False),
        (np.array([1.0, 0.3]), np.float32, True),
        (np.array([3], np.int64), np.float32, True),
        (np.array([True]), np.int64, True),
        (np.array([2], np.int64), np.bool_, False),
        (np.array(["1"]), np.int64, False),
        (np.array([1j]), np.float32, False),
    ],
)
def test_cast_safely_keeps_the_values(values: Any, target: Any, safe: bool) -> None:
    cast = cast_safely(values, np.dtype(target))
    assert (cast is not None) == safe
    if cast is not None:
        assert cast.dtype == target
        np.testing.assert_allclose(cast, values.astype(np.float64))
        assert not np.shares_memory(cast, values)


DICT = spaces.Dict({"a": spaces.Discrete(3), "b": BOX})
TUPLE = spaces.Tuple([spaces.Discrete(3), BOX])
DISCRETE = spaces.Discrete(3)
ONE = {"a": 1, "b": np.zeros(2, np.float32)}


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


NESTED = spaces.Dict({"ok": BOX, "in": spaces.Dict({"deep": BOX})})


@pytest.mark.parametrize(
    ("space", "part"),
    [
        (NESTED, "observation_space['in']"),
        (spaces.Tuple([BOX, spaces.Tuple([BOX])]), "observation_space[1]"),
        (spaces.Dict({"words": spaces.Text(3)}), "observation_space['words']"),
        (spaces.Text(3), "observation_space"),
        (spaces.Sequence(BOX), "observation_space"),
        (spaces.Graph(BOX, None), "observation_space"),
        (spaces.OneOf([BOX, BOX]), "observation_space"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_spaces_that_sb3_cannot_batch_are_refused(space: Any, part: str) -> None:
    with pytest.raises(UnsupportedSpaceError) as caught:
        Observations(space, 2)
    assert f"Expected {part} to be a Box" in str(caught.value)
    # SB3 raises NotImplementedError for nested spaces; those who catch that catch this.
    assert isinstance(caught.value, NotImplementedError)


def test_space_from_zero_is_the_same_object() -> None:
    for space in (BOX, DICT, TUPLE, spaces.MultiDiscrete([2, 3])):
        assert Observations(space, 2).presented is space


def test_spaces_are_presented_from_zero() -> None:
    shown = Observations(spaces.Dict({"a": spaces.Discrete(3, start=-2), "b": BOX}), 2).presented
    assert shown == spaces.Dict({"a": spaces.Discrete(3), "b": BOX})
    unsorted = spaces.Dict([("z", spaces.Discrete(3, start=1)), ("a", BOX)])
    shown = Observations(unsorted, 2).presented
    assert isinstance(shown, spaces.Dict)
    assert list(shown.spaces) == ["z", "a"]
    multi = spaces.MultiDiscrete([2, 3], start=[1, 1], dtype=np.int32)
    assert Observations(multi, 2).presented == spaces.MultiDiscrete([2, 3], dtype=np.int32)
    np.testing.assert_array_equal(multi.start, [1, 1])


def test_observation_of_another_shape_is_refused() -> None:
    observations = Observations(BOX, 2)
    batch = observations.empty()
    with pytest.raises(ConversionError, match=r"shape \(2,\).*row 1 gave shape=\(1,\)"):
        observations.write(batch, 1, np.zeros(1))  # assignment alone would broadcast it


def test_batch_without_a_key_is_refused() -> None:
    observations = Observations(DICT, 2)
    with pytest.raises(ConversionError, match="the keys"):
        observations.batch({"a": np.zeros(2)}, copy=True)


def test_single_observations_share_nothing() -> None:
    observations = Observations(DICT, 3)
    batch = [np.arange(3), np.arange(6, dtype=np.float32).reshape(3, 2)]
    first, second = observations.rows(batch, np.array([0, 2]))
    first["b"][...] = -1  # its own to write to, and whole arrays only
    same(second, {"a": np.int64(2), "b": np.array([4, 5], np.float32)})
    same(batch, [np.arange(3), np.arange(6, dtype=np.float32).reshape(3, 2)])
