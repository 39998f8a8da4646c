"""Options of a reset, as users pass them for each row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sb3compat._convert.types import Options, Rows, Value


def groups_of(options: Sequence[Options]) -> list[Rows]:
    """The rows that share their options, as index arrays."""
    groups: list[tuple[Options, list[int]]] = []
    for i, row in enumerate(options):
        for held, rows in groups:
            if same_value(held, row):
                rows.append(i)
                break
        else:
            groups.append((row, [i]))
    return [np.array(rows, np.intp) for _, rows in groups]


def same_value(a: Value, b: Value) -> bool:
    """Whether two values are equal and of one type; arrays within are compared as wholes."""
    try:
        return a is b or _same(a, b)
    except RecursionError:  # they contain themselves
        return False


def _same(a: Value, b: Value) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and type(a) is type(b):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and a.dtype == b.dtype and np.array_equal(a, b)
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:  # values that cannot be compared are not known to be the same
        return a is b
