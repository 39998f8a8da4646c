"""The infos of rows that have the same keys, by column: NumPy scalars take long to pickle.

MuJoCo's environments give four of them in each row and step. One at a time, they would take the
parent as long as the physics takes the workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from sb3compat._convert.infos import dicts_of
from sb3compat._convert.types import Info, Value

# Their values are what an array of that dtype gives back.
_SCALARS = frozenset(np.dtype(code).type for code in (*np.typecodes["AllInteger"], *"efdFD?"))


class Packed(NamedTuple):
    """The values of one key that are NumPy scalars of one type."""

    dtype: str
    data: bytes


class Columns(NamedTuple):
    """The infos of some rows.

    Attributes:
        rows: The rows.
        keys: The keys of each, in order.
        columns: For each key, the values in the order of the rows.
    """

    rows: list[int]
    keys: list[str]
    columns: list[Packed | list[Value]]

    def infos(self) -> dict[int, Info]:
        """One dict for each row, with values of the very types that they had."""
        columns = [_unpacked(column) for column in self.columns]
        return dict(zip(self.rows, dicts_of(self.keys, columns), strict=True))


def by_column(infos: Mapping[int, Info]) -> tuple[dict[int, Info], list[Columns]]:
    """The infos that are sent as they are, and those that are sent by column.

    Args:
        infos: The infos, by row.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for row, info in infos.items():
        groups.setdefault(tuple(info), []).append(row)
    alone: dict[int, Info] = {}
    columns = []
    for rows in groups.values():
        some = [infos[row] for row in rows]
        # Keys that are equal may differ in type, unless all are strings.
        if len(rows) > 1 and all(type(info) is dict and _are_strings(info) for info in some):
            keys = list(some[0])
            columns.append(Columns(rows, keys, [_packed([i[key] for i in some]) for key in keys]))
        else:
            alone |= zip(rows, some, strict=True)
    return alone, columns


def _are_strings(info: Info) -> bool:
    return {*map(type, info)} == {str}


def _packed(values: list[Value]) -> Packed | list[Value]:
    kind = type(values[0])
    if kind not in _SCALARS or {*map(type, values)} != {kind}:
        return values
    array = np.array(values, values[0].dtype)
    return Packed(array.dtype.char, array.tobytes())


def _unpacked(column: Packed | list[Value]) -> list[Value]:
    return list(np.frombuffer(column.data, column.dtype)) if isinstance(column, Packed) else column
