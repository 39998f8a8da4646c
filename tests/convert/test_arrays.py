"""Arrays of any library, copies and safe casts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from sb3compat._convert.arrays import (
    cast_safely,
    copy_dict,
    copy_value,
    is_foreign_array,
    row_array,
    to_numpy,
)
from sb3compat.errors import ConversionError
from tests.lockstep import same


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
        (np.array([2**24 + 1], np.int64), np.float32, False),
        (np.array([2**53 + 1], np.int64), np.float64, False),
        (np.array([70000], np.int32), np.float16, False),
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


@pytest.mark.parametrize("dtype", ["bool", "uint64", "float16", "longdouble", "object"])
def test_row_array_holds_numbers_of_any_dtype(dtype: str) -> None:
    assert row_array(np.ones(2, dtype), 2, "rewards").dtype == dtype
    for other in ("complex64", "str", "bytes", "m8[s]", "M8[s]", "f4,f4"):
        with pytest.raises(ConversionError, match="Expected rewards as real numbers"):
            row_array(np.zeros(2, other), 2, "rewards")


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "bfloat16"])
def test_torch_tensors_keep_their_values(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.tensor([0.0, 1.0, 3.0]).to(getattr(torch, dtype))
    assert is_foreign_array(tensor)
    expected = np.array([0, 1, 3], {"bfloat16": "float32"}.get(dtype, dtype))
    same(to_numpy(tensor), expected)
    differentiable = torch.ones(2, requires_grad=True)
    same(to_numpy(differentiable), np.ones(2, np.float32))


RECORDS = np.zeros(2, [("x", int)])


@pytest.mark.parametrize(
    ("value", "change"),
    [
        ([1, [2]], lambda value: value[1].append(3)),
        ({"a": {"b": [1]}}, lambda value: value["a"]["b"].append(2)),
        (([1],), lambda value: value[0].append(2)),
        ({1, 2}, lambda value: value.add(3)),
        (np.zeros(2), lambda value: value.__setitem__(0, 1)),
        (np.array([[1], None], object), lambda value: value[0].append(2)),
        (OrderedDict(a=[1]), lambda value: value["a"].append(2)),
        (RECORDS[0], lambda value: RECORDS.__setitem__("x", 5)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_copies_share_nothing_with_the_value(value: Any, change: Callable[[Any], None]) -> None:
    copied, before = copy_value(value), deepcopy(value)
    assert type(copied) is type(value)
    change(value)
    same(copied, before)
    assert repr(value) != repr(before)  # the change took place


def test_values_that_contain_themselves_are_copied() -> None:
    value: dict[str, Any] = {"array": np.zeros(2)}
    value["list"] = [value]
    copied = copy_value(value)
    assert copied["list"][0] is copied
    assert not np.shares_memory(copied["array"], value["array"])
    copied = copy_dict(value)
    assert copied["list"][0] is copied
    assert copied["list"] is not value["list"]
