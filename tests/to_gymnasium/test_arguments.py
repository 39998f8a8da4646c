"""The arguments of a reset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sb3compat
from sb3compat._to_gymnasium.arguments import (
    own_options,
    rows_under,
    seeds_by_row,
    values_by_row,
)


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (None, [None, None, None]),
        (5, [5, 6, 7]),
        (np.int64(5), [5, 6, 7]),
        ([3, None, np.uint8(1)], [3, None, 1]),
        ((1, 2, 3), [1, 2, 3]),
    ],
)
def test_seeds_by_row(seed: Any, expected: list[int | None]) -> None:
    seeds = seeds_by_row(seed, 3)
    assert seeds == expected
    assert all(type(one) in (int, type(None)) for one in seeds)


def test_too_few_seeds_are_refused() -> None:
    with pytest.raises(sb3compat.ResetArgumentError, match=r"3 seeds.*len\(seed\)=2"):
        seeds_by_row([1, 2], 3)


@pytest.mark.parametrize(
    ("mask", "got"),
    [
        ([True, False, True], r"reset_mask=\[True, False, True\] \(list\)"),
        (np.ones(2, bool), r"reset_mask.shape=\(2,\)"),
        (np.ones(3, int), "reset_mask.dtype=int64"),
        (np.zeros(3, bool), r"reset_mask=array\(\[False, False, False\]\)"),
    ],
)
def test_masks_that_break_a_rule_are_refused(mask: Any, got: str) -> None:
    with pytest.raises(sb3compat.ResetArgumentError, match=rf"at least one True, got {got}"):
        rows_under(mask, 3)


def test_values_by_row() -> None:
    assert values_by_row([1, 2], 2) == [1, 2]
    assert values_by_row((1, 2), 2) == (1, 2)
    assert values_by_row("ab", 2) == ["ab", "ab"]
    for values in ([], [1], (1, 2, 3)):
        with pytest.raises(ValueError, match=rf"of 2 values.*len\(values\)={len(values)}"):
            values_by_row(values, 2)


def test_own_options_hold_the_same_values() -> None:
    options = {"x": [1]}
    own = own_options(options)
    assert own == options
    assert own is not options
    assert own["x"] is options["x"]
    assert own_options(None) is None
    for wrong in ([1], [], "ab", [("x", 1)]):
        kind = type(wrong).__name__
        with pytest.raises(sb3compat.ResetArgumentError, match=rf"options=.* \({kind}\)"):
            own_options(wrong)
