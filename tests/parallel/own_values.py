"""Parts whose values are not those that their spaces declare. Nothing here imports SB3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from tests.to_sb3.driving import recast

FINAL, CUT = "terminal_observation", "TimeLimit.truncated"
DTYPES = [np.float32, np.float64, np.float16, np.int64, np.uint8, np.bool_]


def cast(obs: Any, dtype: Any) -> Any:
    """A third of an observation, or of a batch of them, in this dtype."""
    if isinstance(obs, dict):
        return {key: cast(part, dtype) for key, part in obs.items()}
    if isinstance(obs, tuple):
        return tuple(cast(part, dtype) for part in obs)
    return (np.asarray(obs) / 3).astype(dtype)[()]


def cast_vector(env: Any, dtype: Any) -> Any:
    """Changes observations, and leaves the space as it is."""
    return recast(env, partial(cast, dtype=dtype))


class OwnInfo(dict[str, Any]):
    """The infos of a `VecEnv` may be of any class."""


# What a `VecEnv` may say of a row whose episode goes on.
ODD: list[Callable[[dict[str, Any]], dict[str, Any]]] = [
    lambda info: info,
    lambda info: {},
    lambda info: {"mine": len(info)},
    lambda info: {CUT: True},
    lambda info: {CUT: np.False_},
    lambda info: {CUT: 0},
    lambda info: {CUT: False, FINAL: "not the last one"},
    lambda info: {FINAL: None},
    lambda info: {"sb3compat.worker_lost": False},
    lambda info: OwnInfo({CUT: False}),
    lambda info: OwnInfo(info),
]


def split(rows: Any, counts: Sequence[int]) -> list[Any]:
    """The share of each part in what there is one of for each row."""
    return [rows[start:stop] for start, stop in pairwise(accumulate(counts, initial=0))]
