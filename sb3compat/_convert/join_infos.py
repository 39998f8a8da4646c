"""Infos: SB3's list of dicts as Gymnasium's dict of arrays; the inverse of `split_infos.py`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from sb3compat._convert.infos import contains_itself
from sb3compat._convert.types import Array, Info
from sb3compat.errors import ConversionError


def join_infos(infos: Sequence[Info], without: Collection[str] = ()) -> Info:
    """Join one dict for each row to a dict of arrays; the inverse of `split_infos`.

    If the values of a key have one type, its array is the same as from Gymnasium's own batching, in
    dtype, shape and mask. If Gymnasium's batching would change values, the result differs:

    - numbers (or arrays of one shape) of several types get a type that represents all of them, or
      become an object array if there is none: `1` and `1.75` become `[1.0, 1.75]`, `2**53 + 1` and
      `0.5` an object array;
    - numbers mixed with booleans, values of different kinds, and arrays of several shapes become an
      object array.

    Args:
        infos: The infos of n rows. The result shares their mutable values, so pass copies, as
            `own_info` makes them.
        without: Keys to leave out.

    Returns:
        Under each key `k` an array of length n and under `_k` which rows have it, bool of shape
        `(n,)`. Dicts become dicts of arrays in turn. When `split_infos` splits them again, numbers
        are equal to the originals: Python numbers and NumPy's `int64` and `float64` come back as
        Python numbers, other NumPy scalars as they were, and arrays without shape as scalars.

    Raises:
        ConversionError: If there are both keys `k` and `_k`, as `_k` is the key for the mask of
            `k`; or if a dict contains itself.
    """
    if not any(infos):
        return {}
    columns: dict[str, tuple[list[int], list[Any]]] = {}
    for row, info in enumerate(infos):
        for key, value in info.items():
            if key in without:
                continue
            column = columns.get(key)
            if column is None:
                columns[key] = [row], [value]
            else:
                column[0].append(row)
                column[1].append(value)
    out: Info = {}
    for key, (rows, values) in columns.items():
        mask_key = f"_{key}"
        if mask_key in columns or mask_key in out:
            raise ConversionError(
                f"Expected infos without the key {mask_key!r} beside {key!r}, where Gymnasium "
                f"stores the mask of {key!r}. Rename one of them in the sub-environment, or in "
                "a wrapper around it."
            )
        out[key] = _joined(key, rows, values, len(infos))
        mask = np.zeros(len(infos), np.bool_)
        mask[rows if len(rows) > 1 else rows[0]] = True
        out[mask_key] = mask
    return out


def _joined(key: str, rows: list[int], values: list[Any], num_envs: int) -> Any:
    """The values of one key as an array of all rows, or as a dict of such arrays."""
    kinds = set(map(type, values))
    array: Array | None = None
    if key == "final_obs":  # Gymnasium does not batch this key
        pass
    elif all(issubclass(kind, dict) for kind in kinds):
        nested: list[Any] = [{}] * num_envs
        for row, value in zip(rows, values, strict=True):
            nested[row] = value
        try:
            return join_infos(nested)
        except RecursionError as error:
            raise contains_itself(values[0]) from error
    elif all(issubclass(kind, np.ndarray) for kind in kinds):
        array = _joined_arrays(rows, values, num_envs)
    elif type(values[0]) is bool and kinds <= {bool, np.bool_}:
        array = np.zeros(num_envs, np.bool_)
        array[rows] = values
    elif all(map(_is_number, kinds)):
        array = _joined_numbers(rows, values, num_envs)
    if array is None:
        array = np.full(num_envs, None, dtype=object)
        for row, value in zip(rows, values, strict=True):
            array[row] = value
    return array


def _is_number(kind: type) -> bool:
    # A timedelta is a number to NumPy, but its unit is not part of the type.
    return kind in (int, float) or (
        issubclass(kind, np.number) and not issubclass(kind, np.timedelta64)
    )


def _joined_numbers(rows: list[int], values: list[Any], num_envs: int) -> Array | None:
    dtypes = {np.dtype(type(value)) for value in values}
    array = np.zeros(num_envs, np.result_type(*dtypes))
    try:
        array[rows] = values
    except OverflowError:
        return None
    if len(dtypes) > 1:
        # As Python numbers, which compare exactly.
        numbers = [value.item() if isinstance(value, np.generic) else value for value in values]
        for now, before in zip(array[rows].tolist(), numbers, strict=True):
            if now != before and before == before:
                return None
    return array


def _joined_arrays(rows: list[int], values: list[Array], num_envs: int) -> Array | None:
    shapes = {value.shape for value in values}
    dtypes = {value.dtype for value in values}
    kinds = {dtype.kind for dtype in dtypes}
    if len(shapes) > 1:
        return None
    if len(dtypes) == 1:
        (dtype,) = dtypes
    elif kinds <= set("iuf") or kinds in ({"U"}, {"S"}):
        dtype = np.result_type(*dtypes)
    else:
        return None
    array = np.zeros((num_envs, *shapes.pop()), dtype)
    for row, value in zip(rows, values, strict=True):
        array[row] = value
        if value.dtype != dtype and kinds <= set("iuf"):
            with np.errstate(invalid="ignore"):
                back = array[row].astype(value.dtype)
            if not np.array_equal(back, value, equal_nan=True):
                return None
    return array
