"""The helpers of reproductions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from sb3compat.conformance.program.script import PRELUDE

NAN = float("nan")


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ({"a": np.ones(2)}, {"a": np.ones(2)}, True),
        ({"a": 1}, {"b": 1}, False),
        ((1, [2.0, NAN]), (1, [2.0, NAN]), True),
        (np.array([None, "x"], object), np.array([None, "x"], object), True),
        (np.zeros(2), np.zeros((2, 1)), False),
        ("a", "a", True),
    ],
)
def test_equal_compares_all_the_way_down(a: Any, b: Any, same: bool) -> None:
    assert PRELUDE["equal"](a, b) is same


def test_a_snapshot_is_out_of_reach_of_later_changes() -> None:
    value = {"a": [np.zeros(2)], "b": np.array([np.zeros(1), None], object)}
    copy = PRELUDE["snapshot"](value)
    value["b"][0][:] = 7
    PRELUDE["overwrite"](value)
    assert copy["a"][0].tolist() == [0, 0]
    assert copy["b"][0].tolist() == [0]
    assert value["a"][0].tolist() == [1, 1]


def test_overlap_looks_into_containers() -> None:
    batch = np.zeros((2, 3))
    assert PRELUDE["overlap"]({"x": (batch[0],)}, [batch])
    assert not PRELUDE["overlap"]({"x": (batch[0],)}, [batch.copy()])


def test_one_array_is_filled_with_the_actions_of_each_step() -> None:
    refilled = PRELUDE["refilled"]
    first, second = (refilled(np.array(actions)) for actions in ([0, 1], [2, 0]))
    assert first is second
    assert second.tolist() == [2, 0]
    assert refilled(np.zeros(3)).tolist() == [0, 0, 0]


def test_inside_forgives_a_narrower_dtype_and_no_bounds() -> None:
    space = spaces.Dict(a=spaces.Box(0, 1, (2,), np.float32))
    inside = PRELUDE["inside"]
    assert inside(space, {"a": np.ones(2)})
    assert not inside(space, {"a": np.full(2, 2.0)})
    assert inside(space, {"a": np.full(2, 2.0)}, bounded=False)
    assert not inside(space, {"a": np.ones(3)}, bounded=False)
    assert not inside(space, {}, bounded=False)


def test_info_of_heeds_masks() -> None:
    infos = {"x": np.array([1, 2]), "_x": np.array([True, False]), "y": {"z": np.array([3, 4])}}
    assert PRELUDE["info_of"](infos, 0) == {"x": 1, "y": {"z": 3}}
    assert PRELUDE["info_of"](infos, 1) == {"y": {"z": 4}}


def test_bad_masks_and_unbatched_values_are_named() -> None:
    infos = {"x": np.zeros(2), "_x": np.zeros(2, int), "y": {"z": 1.0, "_z": np.ones(3, bool)}}
    assert PRELUDE["bad_masks"](infos, 2).keys() == {"_x", "_z"}
    assert PRELUDE["unbatched"](infos, 2).keys() == {"z", "_z"}


def test_stacked_rows_are_inside_the_batched_space() -> None:
    single = spaces.Dict(a=spaces.Discrete(3), b=spaces.Tuple([spaces.Box(0, 1, (2,))]))
    batch = PRELUDE["stacked"](single, [single.sample() for _ in range(4)])
    assert batch["a"].shape == (4,)
    assert batch["b"][0].shape == (4, 2)
    value = single.sample()
    changed = PRELUDE["replaced"](batch, 2, value)
    assert PRELUDE["equal"](PRELUDE["part"](single, changed, 2), value)
    assert PRELUDE["equal"](PRELUDE["part"](single, changed, 1), PRELUDE["part"](single, batch, 1))


def test_within_tells_a_hang_from_an_exception() -> None:
    import threading

    lock = threading.Lock()
    with lock:
        assert PRELUDE["within"](0.01, lock.acquire) == "hung"
    assert isinstance(PRELUDE["within"](10, lambda: 1 / 0), ZeroDivisionError)


def test_texts_of_any_length_are_compared_by_what_they_say() -> None:
    strings = pytest.importorskip("numpy.dtypes", reason="needs NumPy 1.25")
    if not hasattr(strings, "StringDType"):
        pytest.skip("needs NumPy 2")
    one, other = (np.array([letter * 100], strings.StringDType()) for letter in "ab")
    assert PRELUDE["equal"](one, one.copy())
    assert not PRELUDE["equal"](one, other)
