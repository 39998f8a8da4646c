"""Values of a trace in few characters."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from sb3compat._convert.types import Value

_FEW = 8
_MOST = 200


def shortened(value: Value, limit: int = _MOST) -> str:
    """A value in few characters: large arrays by their shape and range, the rest cut with `…`."""
    text = " ".join(_plain(value).split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _plain(value: Value) -> str:
    if hasattr(value, "__array__") and not isinstance(value, np.ndarray | np.generic):
        with suppress(Exception):  # arrays of other libraries
            value = np.asarray(value)
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_plain(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_plain, value)) + "]"
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__name__} whose repr raised {type(error).__name__}>"


def _array(array: np.ndarray) -> str:
    if array.size <= _FEW:
        return _plain(array.tolist())
    shape = "x".join(map(str, array.shape))
    if array.dtype.kind in "biuf":
        return f"{array.dtype} {shape}, mean {float(array.mean()):.4g}"
    return f"{array.dtype} {shape}"
