"""Bring the arrays of other libraries to NumPy, in bulk and without importing those libraries."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt


def is_foreign_array(value: object) -> bool:
    """Whether `value` is a torch tensor or a JAX array.

    A type of theirs can only exist once the library was imported, so `sys.modules` answers
    without importing anything.
    """
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
