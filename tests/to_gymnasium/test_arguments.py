"""The arguments of a reset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sb3compat._to_gymnasium.arguments import own_options, rows_under, seeds_by_row, values_by_row
from sb3compat.errors import ResetArgumentError

REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda: seeds_by_row([1, 2], 3), ResetArgumentError, r"3 seeds.*len\(seed\)=2"),
    *(
        (lambda mask=mask: rows_under(mask, 3), ResetArgumentError, f"at least one True, got {got}")
        for mask, got in (
            ([True, False, True], r"reset_mask=\[True, False, True\] \(list\)"),
            (np.ones(2, bool), r"reset_mask.shape=\(2,\)"),
            (np.ones(3, int), "reset_mask.dtype=int64"),
            (np.zeros(3, bool), r"reset_mask=array\(\[False, False, False\]\)"),
        )
    ),
    (lambda: values_by_row([1], 2), ValueError, r"of 2 values.*len\(values\)=1"),
    (lambda: own_options([("x", 1)]), ResetArgumentError, r"options=.* \(list\)"),
    (lambda: own_options("ab"), ResetArgumentError, r"options=.* \(str\)"),
]


@pytest.mark.parametrize(("use", "kind", "message"), REFUSED)
def test_wrong_arguments_are_refused_in_our_words(use: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        use()


def test_numbers_of_numpy_are_plain_seeds() -> None:
    for seed, expected in ((np.int64(5), [5, 6, 7]), ((3, None, np.uint8(1)), [3, None, 1])):
        seeds = seeds_by_row(seed, 3)
        assert seeds == expected
        assert all(type(one) in (int, type(None)) for one in seeds)
