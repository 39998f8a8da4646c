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
        ([2.0, NAN], [2.0, -NAN], True),  # another object
        ([1, True, None], [1.0, 1, None], True),
        ([2.0, NAN], [NAN, 2.0], False),
        (np.array([None, "x"], object), np.array([None, "x"], object), True),
        (np.zeros(2), np.zeros((2, 1)), False),
        ("a", "a", True),
    ],
)
def test_equal_compares_all_the_way_down(a: Any, b: Any, same: bool) -> None:
    assert PRELUDE["equal"](a, b) is same


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


def test_descent_moves_parameters_against_their_gradient_but_not_far() -> None:
    torch = pytest.importorskip("torch")
    moved, still = (torch.nn.Parameter(torch.ones(4)) for _ in range(2))
    optimizer = PRELUDE["descent"]()(iter([moved, still]), lr=0.5)
    (torch.tensor([0.5, -3.0, np.inf, np.nan]) * moved).sum().backward()
    optimizer.step()
    # What is no number stays so: training fails of it.
    np.testing.assert_equal(moved.tolist(), [0.75, 1.5, 0.5, np.nan])
    assert still.tolist() == [1.0] * 4
    optimizer.zero_grad()
    assert moved.grad is None
