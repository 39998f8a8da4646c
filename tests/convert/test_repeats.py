"""Last observations that look overwritten by the following reset."""

from __future__ import annotations

import warnings
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from sb3compat._convert.observations import Observations
from sb3compat._convert.repeats import RepeatWatch, refuse_same_memory
from sb3compat.errors import ConversionError

BOX = spaces.Box(-1, 9, (2,), np.float32)


def warned(watch: RepeatWatch, observations: Observations, finals: list[Any]) -> list[int]:
    """The numbers of the endings that warn, where each next episode begins with zeros."""
    batch = [np.zeros((1, *leaf.shape), leaf.dtype) for leaf in observations.leaves]
    numbers = []
    for number, final in enumerate(finals, 1):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            watch.note(0, observations, final, batch)
        for warning in caught:
            assert "Return copies from the sub-environments" in str(warning.message)
            numbers.append(number)
    return numbers


@pytest.mark.parametrize(
    ("shape", "dtype", "expected"),
    [
        ((2,), np.int8, [8]),
        ((63,), np.int8, [8]),
        ((), np.float32, [8]),
        ((0,), np.float32, []),
        ((64,), np.int8, [1]),
        ((2,), np.float32, [1]),
    ],
)
def test_repeats_warn_once_and_where_they_may_be_chance_at_the_eighth(
    shape: tuple[int, ...], dtype: Any, expected: list[int]
) -> None:
    observations = Observations(spaces.Box(0, 9, shape, dtype), 1)
    assert warned(RepeatWatch(), observations, [np.zeros(shape, dtype)] * 20) == expected


@pytest.mark.parametrize(("dtype", "expected"), [(np.int8, []), (np.float32, [2])])
def test_ending_that_differs_clears_small_integers_only(dtype: Any, expected: list[int]) -> None:
    observations = Observations(spaces.Box(0, 9, (2,), dtype), 1)
    finals = [np.ones(2, dtype), *[np.zeros(2, dtype)] * 20]
    assert warned(RepeatWatch(), observations, finals) == expected


def test_last_observation_in_the_memory_of_the_first_one_is_refused() -> None:
    array = np.zeros(2, np.float32)
    with pytest.raises(ConversionError, match=r"row 1 to return a new observation.*Return copies"):
        refuse_same_memory(1, array, array)
    with pytest.raises(ConversionError, match="the same array"):
        refuse_same_memory(1, array, array[:])  # a view
    parts = {"goal": array, "seen": np.ones(2, np.float32)}
    # A vector wrapper may have given the last one another structure.
    for final in (dict(parts), {**parts, "mask": np.ones(2)}, tuple(parts.values()), array):
        with pytest.raises(ConversionError, match="the same array"):
            refuse_same_memory(1, parts, final)
        refuse_same_memory(1, parts, deepcopy(final))
    with pytest.raises(ConversionError, match="the same array"):
        refuse_same_memory(1, array, {"obs": array, "mask": np.ones(2)})


def test_last_observation_that_shares_one_array_of_several_is_allowed() -> None:
    goal = np.zeros(2, np.float32)
    first, final = ({"goal": goal, "seen": np.ones(2, np.float32)} for _ in range(2))
    refuse_same_memory(0, first, final)
    refuse_same_memory(0, goal, goal.copy())


def test_goal_that_was_reached_and_stays_is_allowed() -> None:
    """Both parts of the last observation are rows of a table, and one is in the first as well."""
    table = np.eye(4)
    first = {"achieved_goal": table[0], "desired_goal": table[2]}
    final = {"achieved_goal": table[2], "desired_goal": table[2]}
    refuse_same_memory(0, first, final)
    refuse_same_memory(0, first, {**final, "mask": np.ones(2)})
    with pytest.raises(ConversionError, match="the same array"):
        refuse_same_memory(0, first, {"mask": np.ones(2), **first})


def test_the_very_dict_without_arrays_is_refused() -> None:
    same_dict = {"a": 1}
    refuse_same_memory(0, same_dict, dict(same_dict))
    with pytest.raises(ConversionError, match="the same array"):
        refuse_same_memory(0, same_dict, same_dict)
