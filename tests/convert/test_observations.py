"""Observations, written, batched and handed out by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from sb3compat._convert.observations import Observations
from sb3compat.errors import ConversionError
from tests.lockstep import batched, from_zero, same
from tests.strategies import any_space

BOX = spaces.Box(-1, 1, (2,), np.float32)
DICT = spaces.Dict({"a": spaces.Discrete(3), "b": BOX})
TWO_THREE = np.array([[2], [3]], np.uint8)


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


@given(space=any_space(), n=st.integers(1, 3))
def test_observations_written_are_those_of_the_batch_from_zero(
    space: spaces.Space[Any], n: int
) -> None:
    observations = Observations(space, n)
    singles = [space.sample() for _ in range(n)]
    written = observations.empty()
    for row, obs in enumerate(singles):
        observations.write(written, row, obs)
    expected = [from_zero(space, obs) for obs in singles]
    same(observations.rows(written, np.arange(n)), expected)
    same([observations.single(obs, copy=True) for obs in singles], expected)
    same(observations.batch(batched(space, singles), copy=True), written)


@pytest.mark.parametrize("form", ["objects", "list", "dense"])
def test_final_observations_are_picked_from_every_form(form: str) -> None:
    observations = Observations(DICT, 2)
    last = {"a": np.int64(2), "b": np.array([0.5, 1], np.float32)}
    values: dict[str, Any] = {
        "objects": np.array([None, last], object),
        "list": [None, last],
        "dense": {"a": np.array([9, 2]), "b": np.array([[9, 9], [0.5, 1]], np.float32)},
    }
    same(observations.picker(values[form], "final_obs")(1), last)
    with pytest.raises(ConversionError, match=r"infos\['final_obs'\] to hold one observation for"):
        Observations(DICT, 3).picker(values[form], "final_obs")


def test_final_observations_are_picked_from_a_list_with_gaps() -> None:
    last = np.ones(2, np.float32)
    pick = Observations(BOX, 2).picker([None, last], "final_obs")
    assert pick(0) is None
    assert pick(1) is last


@pytest.mark.parametrize("shape", [(), (1,)])
def test_final_observations_in_a_batch_are_cast_as_observations_are(shape: tuple[int]) -> None:
    observations = Observations(spaces.Box(0, 9, shape, np.uint8), 2)
    # Nothing is asked of row 0, which has not ended.
    finals = np.array([np.nan, 2.0]).reshape(2, *shape)
    pick = observations.picker(finals, "final_obs")
    (batch,) = observations.batch(np.full((2, *shape), 2.0), copy=True)
    same(pick(1), batch[1])
    with pytest.raises(ConversionError, match=r"dtype uint8.*got dtype=float64 from infos\['final"):
        pick(0)


def test_batches_are_cast_only_where_the_values_stay() -> None:
    observations = Observations(spaces.Box(0, 9, (1,), np.uint8), 2)
    same(observations.batch(np.array([[2.0], [3.0]]), copy=True), [TWO_THREE])
    same(observations.cast(np.array([2.0]), "an environment"), [TWO_THREE[0]])
    refused = pytest.raises(
        ConversionError, match=r"dtype uint8.*got dtype=.* from a wrapper, with"
    )
    for wrong in ([2.5], [-1.0], [np.nan], [np.inf], [256], [-1]):
        batch = np.array([wrong, [3]])
        with refused:
            observations.batch(batch, copy=True, source="a wrapper")
        with refused:
            observations.cast(batch[0], "a wrapper")


@pytest.mark.parametrize("start", [0, 200])
def test_number_that_the_dtype_cannot_hold_is_refused(start: int) -> None:
    observations = Observations(spaces.Discrete(3, start=start, dtype=np.uint8), 1)
    for number in (457, -55):
        with pytest.raises(OverflowError):
            observations.write(observations.empty(), 0, number)
