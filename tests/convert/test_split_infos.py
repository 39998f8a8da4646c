"""Dicts of arrays to lists of dicts, one for each row."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sb3compat._convert.split_infos import split_infos
from sb3compat.errors import ConversionError
from tests.convert.info_batches import INFO, batched
from tests.lockstep import same


@given(rows=st.lists(INFO, min_size=1, max_size=4), data=st.data())
def test_split_undoes_the_batching_of_gymnasium(
    rows: list[dict[str, Any]], data: st.DataObject
) -> None:
    """In all rows, or in some."""
    same(split_infos(batched(rows), len(rows)), rows)
    some = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, unique=True))
    same(split_infos(batched(rows), len(rows), np.array(some)), [rows[i] for i in some])


TWO = np.arange(2)
SPLIT: dict[str, tuple[dict[Any, Any], list[Any]]] = {
    "no mask": (
        {"a": TWO, "b": np.array([1.5, 2.5], np.float32)},
        [{"a": 0, "b": np.float32(1.5)}, {"a": 1, "b": np.float32(2.5)}],
    ),
    "a mask without its key": ({"_k": np.array([True, False])}, [{"_k": True}, {"_k": False}]),
    "a key that looks like a mask": ({"_k": TWO, "__k": np.array([True, False])}, [{"_k": 0}, {}]),
    "a key that is no string": (
        {0: TWO, "a": {1: TWO}},
        [{0: 0, "a": {1: 0}}, {0: 1, "a": {1: 1}}],
    ),
    **{
        f"for every row: {value!r}": ({"k": value}, [{"k": value}] * 2)
        for value in (3, "text", None, np.float32(1), [1, 2, 3], ("a",), np.arange(3), np.array(7))
    },
}


@pytest.mark.parametrize("name", SPLIT)
def test_infos_are_split_by_row(name: str) -> None:
    infos, rows = SPLIT[name]
    same(split_infos(infos, 2), rows)


@pytest.mark.parametrize(
    "not_a_mask",
    [np.array([1, 0]), np.array([True]), [True, False], "text", None, np.array([[True], [False]])],
    ids=repr,
)
def test_key_that_only_looks_like_a_mask_is_kept(not_a_mask: Any) -> None:
    infos = {"k": np.array([5, 6]), "_k": not_a_mask}
    rows = split_infos(infos, 2)
    assert [row["k"] for row in rows] == [5, 6]
    assert all("_k" in row for row in rows)


def test_key_that_is_both_a_key_and_a_mask_is_refused() -> None:
    # Of a sub-environment's {"k": 1, "_k": 2}, Gymnasium keeps k and writes over _k.
    with pytest.raises(ConversionError, match="the mask '__k' itself"):
        split_infos(batched([{"k": 1, "_k": 2}, {"k": 3}]), 2)


class Key(str):
    """Equal to a plain string."""

    __slots__ = ()


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("other", [None, 5, "left", np.arange(3)])
def test_dict_of_some_rows_that_others_do_not_have_is_refused(other: Any, nested: bool) -> None:
    """Gymnasium puts the value of a row into the dict of the rows before."""
    rows: list[dict[str, Any]] = [{"a": {}}, {"a": {1: 2, "b": 3}}, {"a": other}]
    rows = [{"outer": row} for row in rows] if nested else rows
    with pytest.raises(ConversionError, match=r"'a'.*the rows \[2\], which Gymnasium has mixed"):
        split_infos(batched(rows), 3)
    same(split_infos(batched(rows[:2]), 2), rows[:2])


@pytest.mark.parametrize("length", [2, 9])
def test_array_of_a_row_among_empty_dicts_of_others_is_refused(length: int) -> None:
    rows: list[dict[str, Any]] = [{"a": {}}, {"a": {}}, {"a": np.arange(length)}]
    with pytest.raises(ConversionError, match=r"'a'.*the rows \[2\], which Gymnasium has mixed"):
        split_infos(batched(rows), 3)


@pytest.mark.parametrize("keys", [("k", Key("k")), (1, True)])
def test_keys_that_are_equal_stay_what_they_are(keys: Any) -> None:
    for key in (*keys, *keys):
        (row,) = split_infos({key: np.array([5])}, 1)
        assert [type(found) for found in row] == [type(key)]


def test_split_rows_share_nothing() -> None:
    shared = [1, [2]]
    objects = np.array([shared, shared, None], dtype=object)
    infos = {
        "array": np.zeros((3, 2)),
        "object": objects,
        "all": shared,
        "other length": np.zeros(5),
        "nested": {"deep": np.zeros((3, 1))},
    }
    rows = split_infos(infos, 3)
    before = split_infos(infos, 3)
    rows[0]["object"][1].append("changed")
    rows[0]["all"].append("changed")
    rows[0]["nested"]["more"] = 1
    infos["array"][:] = 9
    infos["nested"]["deep"][:] = 9
    shared.append("changed")
    same(rows[1], before[1])
    same(rows[2], before[2])
    assert not np.shares_memory(rows[1]["array"], infos["array"])
    assert not np.shares_memory(rows[1]["other length"], rows[2]["other length"])


def test_keys_under_without_are_left_out() -> None:
    infos = {"a": TWO, "_a": np.ones(2, np.bool_), "_k": np.ones(2, np.bool_), "b": TWO}
    same(split_infos(infos, 2, without=("a", "k")), [{"b": 0}, {"b": 1}])
    del infos["b"]
    same(split_infos(infos, 2, without=("a", "k")), [{}, {}])


def test_any_mapping_is_split_as_a_dict_is() -> None:
    nested = {"a": TWO, "_a": np.array([True, False]), "deeper": {"b": TWO}}
    frozen = MappingProxyType({**nested, "deeper": MappingProxyType(nested["deeper"])})
    same(split_infos({"state": frozen}, 2), split_infos({"state": nested}, 2))


def test_torch_arrays_become_numpy_values() -> None:
    torch = pytest.importorskip("torch")
    infos = {
        "k": torch.tensor([1.5, 2.5]),
        "_k": torch.tensor([True, False]),
        "m": torch.ones((2, 2), dtype=torch.bfloat16),
    }
    rows = split_infos(infos, 2)
    same(rows[0], {"k": np.float32(1.5), "m": np.ones(2, np.float32)})
    assert rows[1].keys() == {"m"}
    infos["m"][:] = 5
    same(rows[1]["m"], np.ones(2, np.float32))


def test_values_that_contain_themselves_are_split() -> None:
    own: dict[str, Any] = {"list": []}
    own["self"] = own
    own["list"].append(own)
    rows = split_infos({"k": np.array([own, None]), "_k": np.array([True, False])}, 2)
    assert rows[1] == {}
    copied = rows[0]["k"]
    assert copied is not own
    assert copied["self"] is copied
    assert copied["list"][0] is copied


def test_dict_of_arrays_that_contains_itself_is_refused() -> None:
    infos: dict[str, Any] = {"x": np.arange(2), "deep": {"y": {}}}
    infos["deep"]["y"]["again"] = infos["deep"]
    with pytest.raises(ConversionError, match="contain themselves"):
        split_infos(infos, 2)
    shared = {"y": np.arange(2)}  # twice the same dict is no circle
    assert split_infos({"a": shared, "b": {"c": shared}}, 2)[1] == {
        "a": {"y": 1},
        "b": {"c": {"y": 1}},
    }
