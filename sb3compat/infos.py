"""Infos: Gymnasium's dict of arrays to SB3's list of dicts. Pure functions over NumPy.

Gymnasium's rule (`VectorEnv._add_info`): key `k` holds one value for each row, and the boolean
array under `_k` says which rows have it. SB3's rule: one plain dict for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from sb3compat.arrays import copy_value, is_foreign_array, to_numpy
from sb3compat.errors import ConversionError

Info = dict[str, Any]
Rows = npt.NDArray[np.intp]

TRUNCATED = "TimeLimit.truncated"
TERMINAL_OBSERVATION = "terminal_observation"

# The dtypes for which a Python scalar says everything; `tolist` makes them many times faster than
# indexing. Any other (float32, int8, ...) came from NumPy scalars and stays one.
_PYTHON_DTYPES = frozenset(np.dtype(t) for t in (np.bool_, np.int64, np.float64))


def mask_of(infos: Mapping[Any, Any], key: Any, num_envs: int) -> npt.NDArray[np.bool_] | None:
    """Which rows have `key`, if the infos say so: `_key` is there, a bool array of length n."""
    value = infos.get(f"_{key}")
    if value is None:
        return None
    if is_foreign_array(value):
        value = to_numpy(value)
    is_one = (
        isinstance(value, np.ndarray) and value.dtype == np.bool_ and value.shape == (num_envs,)
    )
    return value if is_one else None


def split_infos(
    infos: Mapping[Any, Any],
    num_envs: int,
    rows: Rows | None = None,
    without: Iterable[str] = (),
) -> list[Info]:
    """Split a dict of arrays into one dict for each row.

    Args:
        infos: The infos of a `VectorEnv`. An array (NumPy, torch or JAX) of length `num_envs` is
            a batch; a nested dict is split in turn; any other value goes to every row as it is.
            Under `_k`, a bool array of length `num_envs` says which rows have `k`; without it,
            all have.
        num_envs: The number of rows, n.
        rows: The rows wanted, as an index array; all of them when None.
        without: Keys to leave out, with their masks.

    Returns:
        One new dict for each row wanted, in that order. No two share anything mutable, with one
        another or with `infos`.

    Raises:
        ConversionError: If the infos have `k`, `_k` and `__k`, so that `_k` is a mask and a key.
    """
    count = num_envs if rows is None else len(rows)
    if not infos:
        return [{} for _ in range(count)]
    masks = {key: mask_of(infos, key, num_envs) for key in infos}
    skip = {f"_{key}" for key, mask in masks.items() if mask is not None}
    skip.update(without, (f"_{key}" for key in without))
    keys: list[Any] = []
    columns: list[list[Any]] = []
    partial: list[tuple[Any, Rows, list[Any]]] = []
    for key, value in infos.items():
        mask = masks[key]
        if key in skip:
            if mask is not None and masks.get(str(key)[1:]) is not None:
                raise ConversionError(
                    f"Expected infos[{key!r}] to be the mask of {str(key)[1:]!r}, but it has the "
                    f"mask {'_' + str(key)!r} itself: a sub-environment gives both keys, and "
                    "Gymnasium writes one over the other. Rename one of them there."
                )
            continue
        if mask is not None:
            held = mask if rows is None else mask[rows]
            if np.count_nonzero(held) < count:
                at = np.flatnonzero(held)
                partial.append(
                    (key, at, _column(value, num_envs, at if rows is None else rows[at]))
                )
                continue
        keys.append(key)
        columns.append(_column(value, num_envs, rows))

    out = _dicts(len(keys))(keys, columns) if keys else [{} for _ in range(count)]
    for key, at, column in partial:
        for index, value in zip(at.tolist(), column, strict=True):
            out[index][key] = value
    return out


def split_step_infos(infos: Mapping[Any, Any], truncated: npt.NDArray[np.bool_]) -> list[Info]:
    """Split the infos of a step, with `TimeLimit.truncated` added in each row.

    Args:
        infos: The infos, as for `split_infos`.
        truncated: Which rows were truncated, and not terminated as well; of shape `(n,)`.

    Returns:
        One new dict for each row, without a `terminal_observation` that the environment gave.
    """
    if not infos:
        # The commonest infos by far, and to copy a dict is the fastest way to make one.
        out = list(map(dict.copy, repeat({TRUNCATED: False}, len(truncated))))
        for i in truncated.nonzero()[0].tolist():
            out[i][TRUNCATED] = True
        return out
    columns = {k: value for k, value in infos.items() if k not in (TRUNCATED, f"_{TRUNCATED}")}
    columns[TRUNCATED] = truncated
    return split_infos(columns, len(truncated), without=(TERMINAL_OBSERVATION,))


@cache
def _dicts(count: int) -> Callable[[list[Any], list[list[Any]]], list[Info]]:
    """A function that builds one dict for each row out of `count` keys and their columns.

    A dict display with all keys takes less than half the time of `dict(zip(keys, values))`. Only
    the number of keys enters the generated source, never a key.
    """
    names = [f"k{i}" for i in range(count)], [f"v{i}" for i in range(count)]
    display = ", ".join(f"{key}: {value}" for key, value in zip(*names, strict=True))
    source = (
        "def build(keys, columns):\n"
        f"    {', '.join(names[0])}, = keys\n"
        f"    return [{{{display}}} for {', '.join(names[1])}, in zip(*columns, strict=True)]\n"
    )
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    build: Callable[[list[Any], list[list[Any]]], list[Info]] = namespace["build"]
    return build


def _column(value: Any, num_envs: int, rows: Rows | None) -> list[Any]:
    """The values of one key for the rows wanted, each owned by its row."""
    if isinstance(value, dict):
        return split_infos(value, num_envs, rows)
    if is_foreign_array(value):
        value = to_numpy(value)
    if isinstance(value, np.ndarray) and value.ndim > 0 and len(value) == num_envs:
        return _batch_column(value, rows)
    count = num_envs if rows is None else len(rows)
    return [copy_value(value) for _ in range(count)]


def _batch_column(array: npt.NDArray[Any], rows: Rows | None) -> list[Any]:
    if array.dtype.hasobject:
        return [copy_value(item) for item in (array if rows is None else array[rows])]
    wanted = array if rows is None else array[rows]
    if array.ndim == 1 and (array.dtype in _PYTHON_DTYPES or array.dtype.kind in "US"):
        values: list[Any] = wanted.tolist()
        return values
    # Indexing by an array has copied already.
    return list(array.copy() if rows is None else wanted)
