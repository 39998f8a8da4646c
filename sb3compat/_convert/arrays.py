"""NumPy arrays from values of any library, without importing it; copies and safe casts."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Literal

import numpy as np

from sb3compat._convert.types import Array
from sb3compat.errors import ConversionError, shown

_IMMUTABLE = (bool, int, float, complex, str, bytes, type(None), np.generic)


def is_foreign_array(value: object) -> bool:
    """Whether `value` is a torch tensor or a JAX array.

    A tensor can only exist once its library was imported, so `sys.modules` answers without
    importing anything.
    """
    if isinstance(value, np.ndarray):  # the most common type; the other checks are slow
        return False
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    return (torch is not None and isinstance(value, torch.Tensor)) or (
        jax is not None and isinstance(value, jax.Array)
    )


def to_numpy(value: object) -> Array:
    """`value` as a NumPy array, moved as one piece; NumPy arrays are returned as they are.

    Torch and JAX arrays may share their memory with the result where they live on the CPU, so
    the caller has to copy the result before it returns it to the user. NumPy has no bfloat16;
    float32 holds each of its values exactly.

    Raises:
        ConversionError: If NumPy cannot hold it, such as a typed PRNG key of JAX.
    """
    if isinstance(value, np.ndarray):
        return value
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        tensor = value.detach().cpu()
        return np.asarray(tensor.float() if tensor.dtype == torch.bfloat16 else tensor)
    try:
        array = np.asarray(value)
    except TypeError as error:
        raise ConversionError(
            f"Expected arrays that NumPy can hold, got {shown(value)} ({type(value).__name__}): "
            f"{error}. Leave it out of what the environment returns."
        ) from error
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def leaves_of(value: object, at: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], Any]:
    """The parts of a dict or tuple that are none themselves, each under its keys, at any depth.

    Args:
        value: The dict or tuple; any other value is its own only part.
        at: The keys that lead to the value.
    """
    if not isinstance(value, Mapping | tuple):
        return {at: value}
    parts = value.items() if isinstance(value, Mapping) else enumerate(value)
    return {key: leaf for k, part in parts for key, leaf in leaves_of(part, (*at, k)).items()}


def copy_value(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """A copy of `value` that shares nothing mutable with it.

    Containers, arrays and other mutable values are copied at every depth, as `DummyVecEnv` does;
    a container may contain itself. NumPy scalars and other immutable values are returned as they
    are.

    Args:
        value: The value.
        memo: Copies that were made already, as for `copy.deepcopy`.
    """
    leaf = _copy_leaf(value)
    if leaf is not _NO_LEAF:
        return leaf
    # Most containers are flat; `deepcopy` would take many times as long.
    if type(value) is dict:
        flat = {key: _copy_leaf(item) for key, item in value.items()}
        if not any(item is _NO_LEAF for item in flat.values()):
            return flat
    elif type(value) is list:
        items = [_copy_leaf(item) for item in value]
        if not any(item is _NO_LEAF for item in items):
            return items
    return deepcopy(value, memo)


def copy_dict(value: dict[Any, Any]) -> dict[Any, Any]:
    """A plain dict with copies of the values; where one of them contains `value`, of itself."""
    own: dict[Any, Any] = {}
    memo: dict[int, Any] = {id(value): own}
    for key, item in value.items():
        own[key] = copy_value(item, memo)
    return own


_NO_LEAF = object()


def _copy_leaf(value: Any) -> Any:
    """A copy of a value that contains no other; `_NO_LEAF` for other values."""
    if isinstance(value, _IMMUTABLE) and not isinstance(value, np.void):  # a view of its array
        return value
    if type(value) is np.ndarray and not value.dtype.hasobject:
        return value.copy()
    return _NO_LEAF


def cast_safely(array: Array, dtype: np.dtype[Any]) -> Array | None:
    """A new array of `dtype`, or None where the cast would change what the values mean.

    A cast is safe between floats of different precision (NumPy's `same_kind`), and wherever every
    value stays the same: SB3 itself sends float32 actions for MultiBinary. An integer that does
    not fit is not safe, although `same_kind` lets it wrap around, or become another float.
    """
    from_floats = array.dtype.kind in "fc"
    # NumPy calls a cast of integers of 64 bits to float64 safe.
    exact = from_floats or dtype.kind not in "fc" or array.itemsize < dtype.itemsize
    rule: Literal["same_kind", "safe"] = "same_kind" if from_floats else "safe"
    if exact and np.can_cast(array.dtype, dtype, rule):
        return array.astype(dtype)
    if array.dtype.kind not in "biuf":
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        cast = array.astype(dtype)
        same = np.array_equal(cast.astype(array.dtype), array) and bool(
            np.all((cast >= 0) == (array >= 0))
        )
    return cast if same else None


def row_array(value: object, num_envs: int, name: str, hint: str = "") -> Array:
    """`value` as an array with one element for each row.

    Args:
        value: A NumPy, torch or JAX array, or a list.
        num_envs: The number of rows, n.
        name: The name of the value, for the message.
        hint: What to do if the shape is another one, for the message.

    Raises:
        ConversionError: If its shape is not `(n,)`, or its elements are no numbers on a line: a
            cast would drop the imaginary part, and read a string.
    """
    array = np.asarray(to_numpy(value))
    if array.shape != (num_envs,):
        raise ConversionError(
            f"Expected {name} of shape ({num_envs},), one for each row, got "
            f"{name}.shape={array.shape}.{hint}"
        )
    if array.dtype.kind not in "biufO":
        raise ConversionError(
            f"Expected {name} as real numbers, got {name}.dtype={array.dtype}: "
            f"{shown(array.tolist())}. Return one int, float or bool for each row."
        )
    return array


def frames_of(frames: Any, num_envs: int, what: str) -> list[Any]:
    """The frames of n rows.

    Args:
        frames: What was returned for them: a list, tuple or array with a frame for each row.
        num_envs: The number of rows, n.
        what: The method and what it is a method of, for the message.

    Raises:
        ConversionError: If it is something else, such as one image of all rows.
    """
    is_list, shape = isinstance(frames, list | tuple), getattr(frames, "shape", ())
    # One image, which has three dimensions, would be taken for as many frames as it is high.
    if not (is_list or len(shape) in (1, 4)) or len(frames) != num_envs:
        got = f"{len(frames)} frames" if is_list else shown(frames)
        raise ConversionError(
            f"Expected {what} to return {num_envs} frames, one for each row, got "
            f"{f'an array of shape {tuple(shape)}' if shape else got}. Return a tuple "
            "of one frame for each row."
        )
    return list(frames)
