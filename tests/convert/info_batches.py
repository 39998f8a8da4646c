"""Infos of single environments, and how Gymnasium batches them."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from hypothesis import strategies as st

# One type for each key, as Gymnasium's own batching keeps only those apart.
VALUES = {
    "int": st.integers(-(2**60), 2**60),
    "float": st.floats(allow_nan=False),
    "flag": st.booleans(),
    "name": st.text(max_size=3),
    "none": st.none(),
    "array": st.lists(st.floats(0, 1, width=32), min_size=2, max_size=2).map(
        lambda values: np.array(values, np.float32)
    ),
    "half": st.floats(0, 1, width=32).map(np.float32),
    "object": st.lists(st.integers(), max_size=2),
    "_private": st.integers(0, 9),
}
ROW = st.fixed_dictionaries({}, optional=dict(VALUES))
INFO = st.builds(
    lambda row, nested: row | ({} if nested is None else {"nested": nested}),
    ROW,
    st.one_of(st.none(), ROW),
)


def batched(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The infos of single environments, batched by Gymnasium."""
    env: VectorEnv[Any, Any, Any] = VectorEnv()
    env.num_envs = len(rows)
    infos: dict[str, Any] = {}
    for i, row in enumerate(rows):
        infos = env._add_info(infos, row, i)
    return infos


def equal(a: Any, b: Any) -> bool:
    """Equal in value; NumPy numbers may be Python numbers now, and arrays without shape scalars."""
    if isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in b)
    if isinstance(b, np.ndarray) and b.ndim == 0:
        b = b[()]
    if isinstance(b, np.ndarray):
        if a.shape != b.shape or not isinstance(a, np.ndarray):
            return False
        return all(equal(x, y) for x, y in zip(a.flat, b.flat, strict=True))
    if isinstance(b, list | tuple):
        return type(a) is type(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(b, bool | np.bool_) or isinstance(a, bool | np.bool_):
        return isinstance(a, bool | np.bool_) and bool(a) == bool(b)
    if isinstance(a, np.datetime64 | np.timedelta64):
        return type(a) is type(b) and a.dtype == b.dtype and repr(a) == repr(b)
    # Python's numbers compare exactly, NumPy's after a cast.
    a, b = (value.item() if isinstance(value, np.number) else value for value in (a, b))
    if isinstance(b, complex):
        return equal(complex(a).real, b.real) and equal(complex(a).imag, b.imag)
    return bool(a == b or (a != a and b != b))
