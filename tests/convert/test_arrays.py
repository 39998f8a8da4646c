"""Arrays of any library, copies and safe casts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sb3compat._convert.arrays import cast_safely


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
