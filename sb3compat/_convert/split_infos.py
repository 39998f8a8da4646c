"""Gymnasium's infos, a dict of arrays, split into SB3's: one dict for each row.

Gymnasium's rule (`VectorEnv._add_info`): key `k` holds one value for each row, and the boolean
array under `_k` says which rows have it. SB3's rule: one plain dict for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import repeat
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from sb3compat._convert.arrays import is_foreign_array, to_numpy
from sb3compat._convert.infos import (
    FINAL_INFO,
    TERMINAL_OBSERVATION,
    TRUNCATED,
    contains_itself,
    own_value,
)
from sb3compat._convert.types import Array, Flags, Info, Rows, VectorInfos
from sb3compat.errors import ConversionError, shown

# The dtypes whose values Python scalars represent fully; `tolist` makes these many times faster
# than indexing. A value of any other dtype (float32, int8, ...) stays a NumPy scalar.
_PYTHON_DTYPES = frozenset(np.dtype(t) for t in (np.bool_, np.int64, np.float64))

_STRING = frozenset({str})
_BOOL = np.dtype(np.bool_)

# Builds one dict for each row from the keys and their columns.
Build = Callable[[Sequence[str], Sequence[Sequence[Any]]], list[Info]]


def mask_of(infos: VectorInfos, key: str, num_envs: int) -> Flags | None:
    """The mask of `key`: the bool array of length n under `_key`; None if there is no mask."""
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
    infos: VectorInfos,
    num_envs: int,
    rows: Rows | None = None,
    without: Iterable[str] = (),
) -> list[Info]:
    """Split a dict of arrays into one dict for each row.

    Args:
        infos: The infos of a `VectorEnv`. An array (NumPy, torch or JAX) of length `num_envs` is
            a batch; a nested dict is split in turn; of any other value, every row gets a copy.
            Under `_k`, a bool array of length `num_envs` says which rows have `k`; without it,
            all have.
        num_envs: The number of rows, n.
        rows: The rows wanted, as an index array; all of them when None.
        without: Keys to leave out, with their masks.

    Returns:
        One new dict for each row wanted, in that order. The dicts share no mutable value with one
        another or with `infos`.

    Raises:
        ConversionError: If the infos have `k`, `_k` and `__k`, so that `_k` is a mask and a key; if
            a dict of arrays contains itself, or values of rows for which the key was no dict.
    """
    if not infos:
        return [{} for _ in range(num_envs if rows is None else len(rows))]
    return _split(infos, num_envs, rows, tuple(without))


def split_step_infos(infos: VectorInfos, truncated: Flags) -> list[Info]:
    """Split the infos of a step, with `TimeLimit.truncated` added in each row.

    Args:
        infos: The infos, as for `split_infos`.
        truncated: Which rows were truncated, and not terminated as well; of shape `(n,)`.

    Returns:
        One new dict for each row, without a `terminal_observation` that the environment gave.
    """
    if not infos:
        # By far the most common infos.
        out = least_infos(len(truncated))
        for i in truncated.nonzero()[0].tolist():
            out[i][TRUNCATED] = True
        return out
    without = (TRUNCATED, TERMINAL_OBSERVATION)
    return _split(infos, len(truncated), None, without, {TRUNCATED: truncated.tolist()})


def least_infos(count: int) -> list[Info]:
    """New infos of `num_envs` rows whose episodes continue, without other keys."""
    # Copying a dict is the fastest way to make one.
    return list(map(dict.copy, repeat({TRUNCATED: False}, count)))


def dicts_of(keys: Sequence[str], columns: Sequence[Sequence[Any]]) -> list[Info]:
    """One new dict for each row.

    Args:
        keys: The keys of each dict, one at least.
        columns: For each key, one value for each row.
    """
    return _builder(len(keys))(keys, columns)


def _split(
    infos: VectorInfos,
    num_envs: int,
    rows: Rows | None,
    without: tuple[str, ...],
    added: Mapping[str, list[Any]] = MappingProxyType({}),
) -> list[Info]:
    """Split infos as `split_infos` does, and add columns of all rows."""
    plan = None
    if _STRING.issuperset(map(type, infos)):
        plan = _plan(tuple(infos), without, tuple(added))
    entries = _planned(plan, infos, num_envs) if plan is not None else None
    if entries is None:
        plan, entries = None, _looked_up(infos, num_envs, without)
    count = num_envs if rows is None else len(rows)
    full = _full(count)
    keys: list[str] = []
    columns: list[list[Any]] = []
    partial: list[tuple[str, Rows, list[Any]]] = []
    for key, mask in entries:
        value = infos[key]
        if mask is not None:
            if isinstance(value, Mapping):
                _refuse_mixed(key, value, num_envs)
            held = mask if rows is None else mask[rows]
            if held.tobytes() != full:
                at = held.nonzero()[0]
                some = at if rows is None else rows[at]
                partial.append((key, at, _column(value, num_envs, some)))
                continue
        keys.append(key)
        columns.append(_column(value, num_envs, rows))
    columns += added.values()
    if plan is not None and columns and not partial:
        return plan.build((), columns)
    out = dicts_of([*keys, *added], columns) if columns else [{} for _ in range(count)]
    for key, at, column in partial:
        for index, value in zip(at.tolist(), column, strict=True):
            out[index][key] = value
    return out


class _Plan(NamedTuple):
    """How infos with these keys are split.

    Attributes:
        keys: The keys of the rows' dicts, each with the key of what should be its mask.
        build: Builds the dicts if all rows have all keys.
    """

    keys: tuple[tuple[str, str | None], ...]
    build: Build


@lru_cache(maxsize=256)
def _plan(keys: tuple[str, ...], without: tuple[str, ...], added: tuple[str, ...]) -> _Plan | None:
    """The plan for infos with these keys; None if one may be the mask of a mask."""
    masks = {f"_{key}" for key in keys}.intersection(keys)
    if any(f"_{mask}" in masks for mask in masks):
        return None
    skip = {*masks, *without, *(f"_{key}" for key in without)}
    wanted = [key for key in keys if key not in skip]
    pairs = ((key, f"_{key}" if f"_{key}" in masks else None) for key in wanted)
    return _Plan(tuple(pairs), _compiled([*map(repr, wanted), *map(repr, added)]))


def _planned(
    plan: _Plan, infos: VectorInfos, num_envs: int
) -> list[tuple[str, Flags | None]] | None:
    """The keys of the rows' dicts and their masks; None if one of these is no mask."""
    found: list[tuple[str, Flags | None]] = []
    for key, name in plan.keys:
        mask = None
        if name is not None:
            mask = infos[name]
            # What `mask_of` asks, for the form that nearly all masks have.
            if type(mask) is not np.ndarray or mask.dtype is not _BOOL:
                return None
            if mask.shape != (num_envs,):
                return None
        found.append((key, mask))
    return found


def _looked_up(
    infos: VectorInfos, num_envs: int, without: Collection[str]
) -> list[tuple[str, Flags | None]]:
    """The keys of the rows' dicts and their masks, of any infos."""
    masks = {key: mask_of(infos, key, num_envs) for key in infos}
    skip = {f"_{key}" for key, mask in masks.items() if mask is not None}
    if any(masks.get(key) is not None for key in skip):
        skip = _mask_keys(masks)
    skip.update(without, (f"_{key}" for key in without))
    return [(key, mask) for key, mask in masks.items() if key not in skip]


@lru_cache(maxsize=64)
def _full(count: int) -> bytes:
    """The bytes of a mask of all rows."""
    return b"\x01" * count


def refuse_mixed_final(infos: VectorInfos, num_envs: int) -> None:
    """Refuse the infos of a SAME_STEP ending that Gymnasium has mixed with those of other rows.

    Args:
        infos: The infos of the step.
        num_envs: The number of rows.

    Raises:
        ConversionError: If a sub-environment gives `_final_obs` or `_final_info`, over which
            Gymnasium writes a mask; or a `final_info` that is no dict, which it adds to the dict of
            the rows that ended.
    """
    _mask_keys({key: mask_of(infos, key, num_envs) for key in infos})
    final = infos.get(FINAL_INFO)
    rows = _mixed_rows(final, num_envs) if isinstance(final, Mapping) else []
    if rows:
        raise ConversionError(
            f"Expected infos[{FINAL_INFO!r}] to hold the last infos of the rows that ended, "
            f"got further values of the rows {shown(rows)}: a sub-environment returns a key of "
            "the same name, and Gymnasium mixes the two. Rename the key in the sub-environment."
        )


def _refuse_mixed(key: object, value: Mapping[Any, Any], num_envs: int) -> None:
    """Refuse a dict with a mask to which Gymnasium has added values of rows that gave no dict."""
    rows = _mixed_rows(value, num_envs)
    if rows:
        raise ConversionError(
            f"Expected infos[{key!r}] to be a dict in each row that has the key, got another value "
            f"in the rows {shown(rows)}, which Gymnasium has mixed with the dicts of other rows. "
            "Leave the key out where there is no dict; or adapt the environment without vector "
            "wrappers, so that infos are read row by row."
        )


def _mixed_rows(value: Mapping[Any, Any], num_envs: int) -> list[int]:
    """The numbers of rows among the keys: Gymnasium gives a mask to each key of an info."""
    if _STRING.issuperset(map(type, value)):
        return []
    numbers = [key for key in value if type(key) is int and f"_{key}" not in value]
    rows = [key for key in numbers if 0 <= key < num_envs]
    if any(f"_{key}" in value for key in value):
        return rows
    # An environment that makes its infos itself may have keys that are numbers, with arrays.
    return [row for row in rows if getattr(value[row], "shape", ())[:1] != (num_envs,)]


def _mask_keys(masks: Mapping[str, Flags | None]) -> set[str]:
    """The keys that are masks, for infos in which a mask seems to have a mask of its own.

    With `k`, `_k`, `__k` and `___k`, sub-environments gave `k` and `__k`. Without `___k`, they gave
    `k` and `_k`, whose values and masks Gymnasium has written over one another.
    """
    owners = {f"_{key}": key for key, mask in masks.items() if mask is not None}

    def is_mask(key: str) -> bool:
        return key in owners and not is_mask(owners[key])

    for key, owner in owners.items():
        if key in masks and is_mask(owner) and masks[key] is None:
            raise ConversionError(
                f"Expected infos[{owner!r}] to be the mask of {str(owner)[1:]!r}, but it has the "
                f"mask {key!r} itself: a sub-environment returns both keys, and Gymnasium "
                "overwrites one by the other. Rename one of the keys in the sub-environment."
            )
    return {key for key in owners if is_mask(key)}


@cache
def _builder(count: int) -> Build:
    """A function that builds one dict for each row out of `count` keys and their columns."""
    names = [f"k{i}" for i in range(count)]
    return _compiled(names, f"    {', '.join(names)}, = keys\n")


def _compiled(keys: Sequence[str], first: str = "") -> Build:
    """Compile a function that builds dicts.

    A dict display with all keys takes less than half the time of `dict(zip(keys, values))`, and
    less again if the keys are literals.

    Args:
        keys: The source of each key.
        first: The lines that come first.
    """
    if not keys:
        return lambda _, columns: []
    names = [f"v{i}" for i in range(len(keys))]
    display = ", ".join(f"{key}: {name}" for key, name in zip(keys, names, strict=True))
    source = (
        f"def build(keys, columns):\n{first}"
        f"    return [{{{display}}} for {', '.join(names)}, in zip(*columns, strict=True)]\n"
    )
    namespace: dict[str, Build] = {}
    exec(source, namespace)
    return namespace["build"]


def _column(value: object, num_envs: int, rows: Rows | None) -> list[Any]:
    """The values of one key for the rows wanted, each owned by its row."""
    if type(value) is np.ndarray and value.shape == (num_envs,) and value.dtype in _PYTHON_DTYPES:
        numbers: list[Any] = (value if rows is None else value[rows]).tolist()
        return numbers
    if isinstance(value, Mapping):
        try:
            return list(split_infos(value, num_envs, rows))
        except RecursionError as error:
            raise contains_itself(value) from error
    if is_foreign_array(value):
        value = to_numpy(value)
    if isinstance(value, np.ndarray) and value.ndim > 0 and len(value) == num_envs:
        return _batch_column(value, rows)
    count = num_envs if rows is None else len(rows)
    return [own_value(value) for _ in range(count)]


def _batch_column(array: Array, rows: Rows | None) -> list[Any]:
    if array.dtype.hasobject:
        return [own_value(item) for item in (array if rows is None else array[rows])]
    wanted = array if rows is None else array[rows]
    if array.ndim == 1 and (array.dtype in _PYTHON_DTYPES or array.dtype.kind in "US"):
        values: list[Any] = wanted.tolist()
        return values
    # Indexing by an array has copied already.
    return list(array.copy() if rows is None else wanted)
