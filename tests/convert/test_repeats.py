"""Last observations that look overwritten by the following reset."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from gymnasium import spaces

from sb3compat._convert.observations import Observations
from sb3compat._convert.repeats import RepeatWatch, refuse_same_memory
from sb3compat.errors import ConversionError

BOX = spaces.Box(-1, 9, (2,), np.float32)
BOXES = Observations(BOX, 2)
PARTS = Observations(spaces.Dict({"goal": BOX, "seen": BOX}), 2)


def test_integers_that_repeat_by_chance_do_not_warn() -> None:
    watch = RepeatWatch()
    for shape, dtype in (((2,), np.int8), ((), np.float32), ((0,), np.float32), ((63,), np.int8)):
        observations = Observations(spaces.Box(0, 9, shape, dtype), 1)
        batch = [np.zeros((1, *shape), dtype)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            watch.note(0, observations, batch[0][0], batch)
    few = Observations(spaces.Box(0, 9, (2,), np.int8), 1)
    watch = RepeatWatch()
    batch = [np.array([[1, 2]], np.int8)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watch.note(0, few, np.array([1, 3], np.int8), batch)
        for _ in range(20):
            watch.note(0, few, np.array([1, 2], np.int8), batch)


def test_integers_warn_when_the_first_eight_endings_all_repeat() -> None:
    few = Observations(spaces.Box(0, 9, (2,), np.int8), 1)
    watch = RepeatWatch()
    batch = [np.array([[1, 2]], np.int8)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(7):
            watch.note(0, few, np.array([1, 2], np.int8), batch)
    with pytest.warns(UserWarning, match="Return copies from the sub-environments"):
        watch.note(0, few, np.array([1, 2], np.int8), batch)


def test_many_integers_that_repeat_warn_at_once() -> None:
    watch = RepeatWatch()
    many = Observations(spaces.Box(0, 9, (64,), np.int8), 1)
    with pytest.warns(UserWarning, match="Return copies from the sub-environments"):
        watch.note(0, many, np.zeros(64, np.int8), [np.zeros((1, 64), np.int8)])


def test_last_observation_in_the_memory_of_the_first_one_is_refused() -> None:
    array = np.zeros(2, np.float32)
    with pytest.raises(ConversionError, match=r"row 1 to return a new observation.*Return copies"):
        refuse_same_memory(BOXES, 1, array, array)
    with pytest.raises(ConversionError, match="the same array"):
        refuse_same_memory(BOXES, 1, array, array[:])  # a view
    parts = {"goal": array, "seen": np.ones(2, np.float32)}
    with pytest.raises(ConversionError, match="the same array"):
        refuse_same_memory(PARTS, 1, parts, dict(parts))


def test_last_observation_that_shares_one_array_of_several_is_allowed() -> None:
    goal = np.zeros(2, np.float32)
    first, final = ({"goal": goal, "seen": np.ones(2, np.float32)} for _ in range(2))
    refuse_same_memory(PARTS, 0, first, final)
    refuse_same_memory(BOXES, 0, goal, goal.copy())


def test_the_very_dict_without_arrays_is_refused() -> None:
    numbers = Observations(spaces.Dict({"a": spaces.Discrete(3)}), 1)
    same_dict = {"a": 1}
    refuse_same_memory(numbers, 0, same_dict, dict(same_dict))
    with pytest.raises(ConversionError, match="the same array"):
        refuse_same_memory(numbers, 0, same_dict, same_dict)


def test_floats_that_repeat_warn_once() -> None:
    watch = RepeatWatch("Build it anew.")
    batch = [np.array([[1, 2], [3, 4]], np.float32)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watch.note(0, BOXES, batch[0][1].copy(), batch)
    with pytest.warns(UserWarning, match=r"of row 1 equals.*Build it anew\."):
        watch.note(1, BOXES, batch[0][1].copy(), batch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watch.note(1, BOXES, batch[0][1].copy(), batch)
