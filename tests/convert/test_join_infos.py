"""Lists of dicts to dicts of arrays: as Gymnasium batches them, where that keeps the values."""

from __future__ import annotations

from collections import OrderedDict
from copy import deepcopy
from enum import IntEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sb3compat._convert.infos import own_info
from sb3compat._convert.join_infos import join_infos
from sb3compat._convert.split_infos import split_infos
from sb3compat.errors import ConversionError
from tests.convert.info_batches import INFO, batched, equal
from tests.lockstep import same

DTYPES = st.one_of(
    hnp.integer_dtypes(),
    hnp.unsigned_integer_dtypes(),
    hnp.floating_dtypes(),
    hnp.complex_number_dtypes(),
    hnp.boolean_dtypes(),
    hnp.unicode_string_dtypes(max_len=3),
    hnp.datetime64_dtypes(),
    hnp.timedelta64_dtypes(),
)
NUMBERS = st.one_of(
    st.integers(),
    st.integers(-3, 3),
    st.floats(),
    st.booleans(),
    st.complex_numbers(),
    st.sampled_from([2**53 + 1, 2**63, -(2**63), 0.5, np.uint64(2**64 - 1), np.int8(-1)]),
    DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, ()).map(lambda array: array[()])),
)
ARRAYS = DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(max_dims=2, max_side=3)))
OBJECTS = st.one_of(
    st.none(),
    st.text(max_size=3),
    st.binary(max_size=2),
    st.lists(NUMBERS, max_size=2),
    st.tuples(NUMBERS),
    st.lists(NUMBERS, max_size=2).map(lambda some: np.array([*some, None], object)),
)
# With and without underscores, so that masks and keys look alike; and a key that is no string.
KEYS = st.sampled_from(
    ["a", "_a", "__a", "___a", "b", "final_obs", "_final_obs", "", "_", 1, "1", None]
)
INFOS = st.recursive(
    st.one_of(NUMBERS, ARRAYS, OBJECTS),
    lambda values: st.dictionaries(KEYS, values, max_size=3),
    max_leaves=6,
)
ROWS = st.lists(st.dictionaries(KEYS, INFOS, max_size=4), min_size=1, max_size=4)


def collides(infos: list[Any]) -> bool:
    """Whether there are keys `k` and `_k`, at any level, that would share an array."""
    keys = {key for info in infos for key in info}
    masks = {f"_{key}" for key in keys}
    if keys & masks or len(masks) < len(keys):
        return True
    for key in keys - {"final_obs"}:
        values = [info[key] for info in infos if key in info]
        if all(isinstance(value, dict) for value in values) and collides(values):
            return True
    return False


@given(ROWS)
@example([{"k": 1}, {"_k": True}])
@example([{"_k": 1}, {"k": True}])
@example([{"a": {"k": 1, "_k": 2}}])
@example([{1: 1, "1": 1}])
def test_split_undoes_join(rows: list[dict[Any, Any]]) -> None:
    before = deepcopy(rows)
    if collides(rows):
        with pytest.raises(ConversionError, match="Rename one of them"):
            join_infos(rows)
        return
    joined = join_infos(rows)
    split = split_infos(joined, len(rows))
    for ours, row in zip(split, before, strict=True):
        assert equal(ours, row), (joined, ours, row)
    for ours, row in zip(rows, before, strict=True):
        assert equal(ours, row)


@given(rows=st.lists(INFO, min_size=1, max_size=4))
def test_join_of_plain_infos_equals_the_batching_of_gymnasium(rows: list[dict[str, Any]]) -> None:
    same(join_infos(rows), batched(rows))


class Own(np.ndarray[Any, Any]):
    """An array of a class of one's own."""


SAME = {
    "numpy booleans": [np.bool_(True), np.bool_(False)],
    "booleans of both kinds": [True, np.bool_(False)],
    "numpy booleans first": [np.bool_(True), False],
    "complex": [np.complex64(1j), np.complex64(2)],
    "python's complex": [1j, 2j],
    "arrays of objects": [np.array([None, "a"]), np.array([{}, 1], object)],
    "arrays without shape": [np.array(1.5), np.array(2.5)],
    "arrays of strings": [np.array(["a", "bc"]), np.array(["d", "ef"])],
    "dates": [np.datetime64("2020"), np.datetime64("2021")],
    "empty dicts": [{}, {}],
    "ordered dicts": [OrderedDict(a=1), OrderedDict(a=2)],
    "enums": [IntEnum("Color", "RED").RED, IntEnum("Color", "RED").RED],
    "first float, then int": [1.75, 1],
    "masked arrays": [np.ma.array([1, 2], mask=[True, False]), np.ma.array([3, 4])],
    "matrices": [np.asmatrix([[1, 2]]), np.asmatrix([[3, 4]])],
    "records": [np.rec.array([(1, 0.5)], [("a", int), ("b", float)])] * 2,
    "arrays of a class of one's own": [np.arange(2).view(Own), np.arange(2)],
    "arrays and those of a class of one's own": [np.arange(2), np.arange(2).view(Own)],
}


@pytest.mark.parametrize("values", SAME.values(), ids=SAME)
@pytest.mark.parametrize("gaps", [False, True])
def test_values_of_one_type_give_the_array_of_gymnasium(values: list[Any], gaps: bool) -> None:
    rows = [{"k": value} for value in values]
    if gaps:
        rows = [{}, rows[0], {}, {}, rows[1]]
    same(join_infos(rows), batched(rows))


KEPT = {
    "promoted": ([1, 1.75], np.array([1.0, 1.75])),
    "promoted to the wider": ([np.float32(0.1), 0.1], np.array([np.float32(0.1), 0.1])),
    "integers of two widths": ([np.int8(1), 300], np.array([1, 300])),
    "arrays of two types": ([np.ones(2, np.int8), np.full(2, 0.5)], np.array([[1, 1], [0.5, 0.5]])),
    "strings of two lengths": ([np.array(["a"]), np.array(["bc"])], np.array([["a"], ["bc"]])),
    "too precise": ([2**53 + 1, 0.5], [2**53 + 1, 0.5]),
    "too precise in an array": ([np.array([2**53 + 1]), np.array([0.5])], None),
    "too large": ([2**63, 1], [2**63, 1]),
    "far too large": ([2**70, 1], [2**70, 1]),
    "number and boolean": ([1, True], [1, True]),
    "boolean and number": ([True, 2], [True, 2]),
    "number and string": ([1, "a"], [1, "a"]),
    "number and none": ([1, None], [1, None]),
    "number and array": ([1, np.ones(2)], None),
    "ragged": ([np.ones(2), np.ones(3)], None),
    "would broadcast": ([np.ones(3), np.ones(1)], None),
    "dict and string": ([{"a": 1}, "a"], [{"a": 1}, "a"]),
    "ragged matrices": ([np.ma.ones(2), np.ma.ones(3)], None),
}


@pytest.mark.parametrize(("values", "expected"), KEPT.values(), ids=KEPT)
def test_values_that_gymnasium_would_change_are_kept(values: list[Any], expected: Any) -> None:
    joined = join_infos([{"k": value} for value in values])["k"]
    if isinstance(expected, np.ndarray):
        same(joined, expected)
        return
    assert joined.dtype == object
    assert joined.shape == (2,)
    for ours, value in zip(joined, values, strict=True):
        assert type(ours) is type(value)
        same(ours, value)


def test_dicts_that_contain_themselves_are_refused() -> None:
    info: dict[str, Any] = {"number": 1, "deep": {}}
    info["deep"]["up"] = info["self"] = info
    for rows in ([info, {"number": 3}], [own_info(info), own_info(info)]):
        with pytest.raises(ConversionError, match="do not contain themselves"):
            join_infos(rows)
    # A list is a value like any other.
    listed: list[Any] = []
    listed.append(listed)
    assert join_infos([own_info({"list": listed})])["list"][0][0][0] is not listed
