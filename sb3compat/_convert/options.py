"""Options of a reset, as users pass them for each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sb3compat._convert.types import GivenOptions, Options
from sb3compat.errors import shown


def options_by_row(options: GivenOptions, num_envs: int) -> list[Options]:
    """The options of each row, as SB3 understands them.

    Args:
        options: One dict for all rows, or a list or tuple with one for each row. None, also for a
            single row, is no options.
        num_envs: The number of rows, n.

    Raises:
        ValueError: If the list does not have n elements.
        TypeError: If an element is neither a dict nor None.
    """
    given: Sequence[Any] = options if isinstance(options, list | tuple) else [options] * num_envs
    if len(given) != num_envs:
        raise ValueError(
            f"Expected one dict of options or a list of {num_envs}, one for each "
            f"row, got len(options)={len(given)}. Pass one dict "
            "for all rows, or a list of that length."
        )
    rows = [{} if row is None else row for row in given]
    for row in rows:
        if not isinstance(row, dict):
            raise TypeError(
                f"Expected options to be dicts, got {shown(row)} ({type(row).__name__}). Pass one "
                "dict for all rows, or a list of dicts."
            )
    return rows


def is_uniform(options: Sequence[Options]) -> bool:
    """Whether all rows have the same options."""
    return all(same_value(options[0], row) for row in options[1:])


def same_value(a: Any, b: Any) -> bool:
    """Whether two values are equal and of one type; arrays within are compared as wholes."""
    try:
        return a is b or _same(a, b)
    except RecursionError:  # they contain themselves
        return False


def _same(a: Any, b: Any) -> bool:
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
