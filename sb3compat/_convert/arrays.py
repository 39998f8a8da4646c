"""Values of any library: brought to NumPy in bulk, copied, without importing that library."""

from __future__ import annotations

import sys
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt

_IMMUTABLE = (bool, int, float, complex, str, bytes, type(None), np.generic)


def is_foreign_array(value: object) -> bool:
    """Whether `value` is a torch tensor or a JAX array.

    A type of theirs can only exist once the library was imported, so `sys.modules` answers
    without importing anything.
    """
    if isinstance(value, np.ndarray):  # the commonest, and the others' checks are slow
        return False
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    return (torch is not None and isinstance(value, torch.Tensor)) or (
        jax is not None and isinstance(value, jax.Array)
    )


def to_numpy(value: Any) -> npt.NDArray[Any]:
    """`value` as a NumPy array, moved as one piece; NumPy arrays are returned as they are.

    Torch and JAX arrays may share their memory with the result where they live on the CPU, so
    whoever hands the result out has to copy it.
    """
    if isinstance(value, np.ndarray):
        return value
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        tensor = value.detach().cpu()
        # NumPy has no bfloat16; float32 holds each of its values exactly.
        return np.asarray(tensor.float() if tensor.dtype == torch.bfloat16 else tensor)
    return np.asarray(value)


def copy_value(value: Any) -> Any:
    """A copy of `value` that shares nothing mutable with it.

    Containers, arrays and whatever else can change are copied all the way down, as
    `DummyVecEnv` does with `deepcopy`; what cannot change is returned as it is.
    """
    if isinstance(value, _IMMUTABLE) and not isinstance(value, np.void):  # a view of its array
        return value
    kind = type(value)
    if kind is dict:
        return {key: copy_value(item) for key, item in value.items()}
    if kind is list:
        return [copy_value(item) for item in value]
    if kind is np.ndarray and not value.dtype.hasobject:
        return value.copy()
    return deepcopy(value)
