"""Arrays of a dtype that the shared ones do not have: parts keep their own, sent in the answer.

A wrapper that normalizes or scales observations often declares the space of what is inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sb3compat._convert.types import Array
from sb3compat.errors import ConversionError


class Unshared(NamedTuple):
    """Some rows of an array that do not fit into the shared one.

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


def share(
    arrays: Sequence[Array], rows: slice, values: Sequence[Array], part: str
) -> list[Unshared]:
    """Write what a part has given into the shared arrays, and return what does not fit.

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
            unshared.append(Unshared(number, rows.start, part, own))
    return unshared


def joined(
    shared: Array, number: int, unshared: Sequence[Unshared], nobody: Sequence[int] = ()
) -> Array:
    """An array of all rows in the dtype that the parts have given.

    Args:
        shared: The shared array, or a copy; returned as it is if all rows fit into it.
        number: Which one it is.
        unshared: What did not fit into the arrays.
        nobody: Rows whose values come from no part; they become zeros of that dtype.

    Raises:
        ConversionError: If the parts have given different dtypes.
    """
    own = [some for some in unshared if some.number == number]
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
            "a cast may cut values off: use the same wrappers in each of env_fns, or have these "
            "wrappers return the dtype of the observation_space (float32 for rewards)."
        )
    return whole
