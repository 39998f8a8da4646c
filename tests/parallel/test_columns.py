"""Infos by column: every value comes back as it was, type and all."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sb3compat._parallel.extras import tables_of
from tests.lockstep import same

CODES = [*np.typecodes["All"].replace("V", "")]


class Text(str):
    __slots__ = ()


def scalar(code: str, number: int) -> Any:
    return np.zeros(1, code)[0] if code in "SUOmM" else np.dtype(code).type(number)


def survives_pickling(code: str) -> bool:
    """NumPy unpickles `np.longlong` as the other type of that size."""
    value = scalar(code, 0)
    return type(pickle.loads(pickle.dumps(value))) is type(value)


values = st.one_of(
    st.builds(scalar, st.sampled_from([*filter(survives_pickling, CODES)]), st.integers(0, 1)),
    st.floats(allow_nan=False),
    st.booleans(),
    st.integers(),
    st.text(max_size=2),
    st.none(),
    st.builds(np.full, st.just(2), st.integers(0, 9)),
    st.dictionaries(st.text(max_size=1), st.integers(), max_size=2),
)
keys = st.sampled_from(["a", "b", "TimeLimit.truncated", 1, True, 1.0, None, Text("a")])


def through_a_pipe(infos: dict[int, Any]) -> dict[int, Any]:
    alone, columns = pickle.loads(pickle.dumps(tables_of(infos)))
    back = dict(alone)
    for some in columns:
        back |= some.infos()
    return back


@given(st.dictionaries(st.integers(0, 6), st.dictionaries(keys, values, min_size=1, max_size=3)))
def test_infos_come_back_as_they_were(infos: dict[int, Any]) -> None:
    back = through_a_pipe(infos)
    assert back.keys() == infos.keys()
    for row, info in infos.items():
        assert [*map(type, back[row])] == [*map(type, info)]
        same(list(back[row].items()), list(info.items()), f"row {row}")


@pytest.mark.parametrize("code", CODES)
def test_numbers_of_each_type_come_back_as_that_type(code: str) -> None:
    infos = {row: {"x": scalar(code, row % 2), "y": row} for row in range(3)}
    back = through_a_pipe(infos)
    for row, info in infos.items():
        assert type(back[row]["x"]) is type(info["x"])
        assert back[row] == info


def test_numpy_numbers_are_sent_as_bytes_and_what_is_mixed_as_it_is() -> None:
    infos = {row: {"x": np.float64(row), "y": np.int32(row) if row else 0} for row in range(3)}
    alone, (columns,) = tables_of(infos)
    assert not alone
    x, y = columns.columns
    assert isinstance(x, tuple)
    assert y == [0, 1, 2]


def test_rows_of_a_mapping_that_is_no_dict_are_sent_as_they_are() -> None:
    class Own(dict[str, int]):
        pass

    infos: dict[int, Any] = {0: Own(x=1), 1: {"x": 1}}
    assert tables_of(infos) == (infos, [])
