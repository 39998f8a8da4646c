"""The results of a step or reset that are not in shared memory, but in the answer of a worker.

These are infos, and arrays whose dtype is not that of the shared arrays: a wrapper that normalizes
or scales observations often declares the space of the environment inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sb3compat._convert.split_infos import dicts_of
from sb3compat._convert.types import Array, Info, VectorInfos
from sb3compat.errors import ConversionError

# An array of one of these dtypes returns their values unchanged.
_SCALARS = frozenset(np.dtype(code).type for code in (*np.typecodes["AllInteger"], *"efdFD?"))

# The values of one key, one for each row; NumPy scalars of one type as their dtype and bytes.
Column = tuple[str, bytes] | list[Any]


class InfoTable(NamedTuple):
    """The infos of rows that have the same keys, by column: NumPy scalars take long to pickle.

    MuJoCo's environments return four of them for each row and step. Unpickled one by one, they
    would take the parent as long as the physics takes the workers.

    Attributes:
        rows: The rows.
        keys: The keys of each, in order.
        columns: For each key, the values in the order of the rows.
    """

    rows: list[int]
    keys: list[str]
    columns: list[Column]

    def infos(self) -> dict[int, Info]:
        """One dict for each row, with values of the original types."""
        columns = [_unpacked(column) for column in self.columns]
        return dict(zip(self.rows, dicts_of(self.keys, columns), strict=True))


def tables_of(infos: Mapping[int, Info]) -> tuple[dict[int, Info], list[InfoTable]]:
    """The infos that are sent as they are, and those that are sent by column.

    Args:
        infos: The infos, by row.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for row, info in infos.items():
        groups.setdefault(tuple(info), []).append(row)
    alone: dict[int, Info] = {}
    tables = []
    for rows in groups.values():
        some = [infos[row] for row in rows]
        # Keys that are equal may differ in type, unless all are strings.
        if len(rows) > 1 and all({*map(type, info)} == {str} for info in some):
            keys = list(some[0])
            columns = [_packed([info[key] for info in some]) for key in keys]
            tables.append(InfoTable(rows, keys, columns))
        else:
            alone |= zip(rows, some, strict=True)
    return alone, tables


def _packed(values: list[Any]) -> Column:
    kind = type(values[0])
    if kind not in _SCALARS or {*map(type, values)} != {kind}:
        return values
    array = np.array(values, values[0].dtype)
    return array.dtype.char, array.tobytes()


def _unpacked(column: Column) -> list[Any]:
    return list(np.frombuffer(column[1], column[0])) if type(column) is tuple else column  # type: ignore[return-value]


class OwnArray(NamedTuple):
    """Rows of an array in a dtype of their own, which do not fit into the shared one.

    Attributes:
        number: Which of the arrays: one for each leaf of the observation space, then the rewards.
        first: The first row.
        part: What has given them, for messages.
        values: One element for each row.
    """

    number: int
    first: int
    part: str
    values: Array


class Extras(NamedTuple):
    """All results that are not in the shared arrays; if there are none, None is sent.

    Attributes:
        infos: The infos of a step that say more than the arrays, by row.
        tables: More of them, by column.
        reset_infos: The infos of resets that are not empty, by row.
        arrays: The observations and rewards that do not fit into the arrays.
        vectors: The infos of a step that are a dict of arrays still, with the rows they are of.
    """

    infos: dict[int, Info]
    tables: list[InfoTable]
    reset_infos: dict[int, Info]
    arrays: list[OwnArray]
    vectors: list[tuple[slice, VectorInfos]]


def no_extras() -> Extras:
    """New extras, to be filled."""
    return Extras({}, [], {}, [], [])


def collected(answers: Iterable[Extras | None]) -> Extras:
    """The extras of all workers, without tables."""
    everything = no_extras()
    for extras in answers:
        if extras is not None:
            everything.infos.update(extras.infos)
            for table in extras.tables:
                everything.infos.update(table.infos())
            everything.reset_infos.update(extras.reset_infos)
            everything.arrays.extend(extras.arrays)
            everything.vectors.extend(extras.vectors)
    return everything


def share(
    arrays: Sequence[Array], rows: slice, values: Sequence[Array], part: str
) -> list[OwnArray]:
    """Write the results of a part into the shared arrays, and return those that do not fit.

    Args:
        arrays: The shared arrays, of all rows.
        rows: The rows of the part.
        values: Its own arrays, in the same order.
        part: What it is, for messages.
    """
    unshared = []
    for number, (array, own) in enumerate(zip(arrays, values, strict=True)):
        if own.dtype == array.dtype:
            array[rows] = own
        else:
            unshared.append(OwnArray(number, rows.start, part, own))
    return unshared


def joined(
    shared: Array, number: int, own_arrays: Sequence[OwnArray], nobody: Sequence[int] = ()
) -> Array:
    """An array of all rows in the dtype that the parts have given.

    Args:
        shared: The shared array, or a copy; returned as it is if all rows fit into it.
        number: Which one it is.
        own_arrays: What did not fit into the arrays.
        nobody: Rows for which no part has returned values; they become zeros of that dtype.

    Raises:
        ConversionError: If the parts have given different dtypes.
    """
    own = [some for some in own_arrays if some.number == number]
    if not own:
        return shared
    whole = np.zeros(shared.shape, own[0].values.dtype)
    others = np.ones(len(shared), np.bool_)
    others[list(nobody)] = False
    for some in own:
        rows = slice(some.first, some.first + len(some.values))
        whole[rows], others[rows] = some.values, False
    dtypes = {str(some.values.dtype): f"{some.part} (row {some.first})" for some in own}
    if others.any():
        dtypes[str(shared.dtype)] = f"the part of row {others.argmax()}"
    if len(dtypes) > 1:
        named = " and ".join(f"{dtype} from {part}" for dtype, part in dtypes.items())
        raise ConversionError(
            f"Expected all parts to give the same dtype, got {named}. One batch has one dtype, and "
            "a cast may change values: use the same wrappers in each of env_fns, or let the "
            "wrappers return the dtype of the observation_space (float32 for rewards)."
        )
    return whole
