"""Arguments that are checked alike wherever they are taken."""

from __future__ import annotations

import math
import operator
from numbers import Real
from typing import SupportsIndex, cast

from sb3compat.errors import shown


def check_timeout(
    timeout: object, name: str = "timeout", otherwise: str = "None waits for ever."
) -> None:
    """Refuse a timeout that is neither None nor a positive, finite number of seconds.

    Args:
        timeout: The value.
        name: The name of the argument.
        otherwise: What else may be passed.

    Raises:
        TypeError: If it is no number; a bool is none.
        ValueError: If it is not positive, or infinite, or NaN.
    """
    if timeout is None:
        return
    got = f"got {name}={shown(timeout)} ({type(timeout).__name__})"
    if isinstance(timeout, bool) or not isinstance(timeout, Real):
        raise TypeError(f"Expected {name} to be a number of seconds or None, {got}.")
    try:
        seconds = float(timeout)
    except OverflowError:
        seconds = math.inf
    if not 0 < seconds < math.inf:  # NaN compares as False, too
        raise ValueError(
            f"Expected {name} to be a positive, finite number of seconds, {got}. {otherwise}"
        )


def check_one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Refuse a value that is not among those that are allowed.

    Raises:
        ValueError: If it is another one.
    """
    if value not in allowed:
        raise ValueError(
            f"Expected {name} to be one of {allowed}, got {name}={shown(value)} "
            f"({type(value).__name__})."
        )


def plain_count(name: str, value: object) -> int:
    """A number of things, of which there is one at least.

    Raises:
        TypeError: If it is no integer, such as 2.0.
        ValueError: If it is less than 1.
    """
    try:
        count = operator.index(cast("SupportsIndex", value))
    except TypeError:
        raise TypeError(
            f"Expected {name} to be an int, got {name}={shown(value)} ({type(value).__name__})."
        ) from None
    if count < 1:
        raise ValueError(f"Expected {name} to be at least 1, got {name}={count}.")
    return count


def plain_seed(seed: object) -> int | None:
    """The seed as Gymnasium takes it: None, or an int of Python's and not of NumPy's.

    Raises:
        TypeError: If it is neither None nor an integer, such as a list with one for each row.
    """
    if seed is None:
        return None
    try:
        return operator.index(cast("SupportsIndex", seed))
    except TypeError:
        raise TypeError(
            "Expected seed to be None or an int, the seed of the first sub-environment; the next "
            f"ones get seed + 1, seed + 2 and so on. Got seed={shown(seed)} "
            f"({type(seed).__name__})."
        ) from None
