"""Options of each row, and whether rows share them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sb3compat._convert.options import is_uniform, options_by_row

VALUES = st.recursive(
    st.one_of(st.integers(0, 1), st.booleans(), st.just(1.0), st.text("ab", max_size=1)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.tuples(inner),
        st.dictionaries(st.sampled_from("xy"), inner, max_size=2),
    ),
    max_leaves=3,
)
OPTIONS = st.lists(
    st.dictionaries(st.sampled_from("ab"), VALUES, max_size=2), min_size=1, max_size=4
)


@given(OPTIONS)
@example([{"a": 1}, {"a": True}, {"a": 1.0}])
@example([{"a": [1]}, {"a": (1,)}, {"a": {"x": 1}}])
def test_options_are_uniform_exactly_where_they_are_equal_in_value_and_type(
    options: list[dict[str, Any]],
) -> None:
    # The text of plain values tells their types: 1, 1.0 and True.
    assert is_uniform(options) == (len({_sorted(row) for row in options}) == 1)


def _sorted(value: Any) -> str:
    if isinstance(value, dict):
        return repr({key: _sorted(value[key]) for key in sorted(value)})
    if isinstance(value, list | tuple):
        return repr((type(value).__name__, [_sorted(item) for item in value]))
    return repr(value)


class Incomparable:
    def __eq__(self, other: object) -> bool:
        raise ValueError("cannot be compared")

    __hash__ = None


ONE = Incomparable()


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (np.arange(3), np.arange(3), True),
        (np.arange(3), np.arange(3.0), False),
        (np.arange(3), [0, 1, 2], False),
        ({"deep": np.zeros(2)}, {"deep": np.ones(2)}, False),
        (0.5, float("0.5"), True),  # equal, and not one object
        (ONE, ONE, True),
        (ONE, Incomparable(), False),
    ],
)
def test_values_are_compared_as_wholes_and_what_cannot_be_compared_is_another(
    first: Any, second: Any, together: bool
) -> None:
    assert is_uniform([{"x": first}, {"x": second}]) == together


def test_options_of_the_rows_may_be_a_tuple() -> None:
    assert options_by_row(({"x": 1}, None), 2) == [{"x": 1}, {}]


def test_options_that_contain_themselves_are_compared() -> None:
    def own() -> dict[str, Any]:
        options: dict[str, Any] = {"x": 1}
        options["self"] = options
        return options

    first = own()
    assert is_uniform([first, first])
    assert not is_uniform([own(), own()])  # not known to be the same
