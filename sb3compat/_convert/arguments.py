"""Checks of arguments that several functions of the package take."""

from __future__ import annotations

import math
import operator
from numbers import Real
from typing import Any, SupportsIndex, cast

import numpy as np

from sb3compat._convert.types import Seeds
from sb3compat.errors import nearest, shown


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
        raise TypeError(
            f"Expected {name} to be a number of seconds, {got}. Pass a number. {otherwise}"
        )
    try:
        seconds = float(timeout)
    except OverflowError:
        seconds = math.inf
    if not 0 < seconds < math.inf:  # NaN compares as False, too
        raise ValueError(
            f"Expected {name} to be a positive, finite number of seconds, {got}. Pass such a "
            f"number. {otherwise}"
        )


def check_one_of(name: str, value: object, allowed: tuple[object, ...], hint: str = "") -> None:
    """Refuse a value that is not among those that are allowed.

    Args:
        name: The name of the argument.
        value: The value.
        allowed: The values that there are.
        hint: What to do about this value; by default, the nearest one is named.

    Raises:
        ValueError: If it is another one.
    """
    if not any(
        value is each or (isinstance(value, type(each)) and value == each) for each in allowed
    ):
        raise ValueError(
            f"Expected {name} to be one of {allowed}, got {name}={shown(value)} "
            f"({type(value).__name__}).{hint or nearest(value, allowed, 'Pass one of these.')}"
        )


def check_flag(name: str, value: object) -> None:
    """Refuse what is neither True nor False: "no" would count as True.

    Raises:
        TypeError: If it is something else.
    """
    fits = isinstance(value, bool | np.bool_)
    check_fits(fits, name, value, "True or False", "Pass one of these.")


def check_fits(fits: bool, name: str, value: object, wanted: str, way_out: str) -> None:
    """Refuse a value of the wrong type.

    Args:
        fits: Whether it is of the right one.
        name: The name of the argument.
        value: The value.
        wanted: What it should be.
        way_out: What to do.

    Raises:
        TypeError: If it does not fit.
    """
    if not fits:
        raise TypeError(
            f"Expected {name} to be {wanted}, got {name}={shown(value)} ({type(value).__name__}). "
            f"{way_out}"
        )


def plain_count(name: str, value: object, least: int = 1) -> int:
    """A count of at least 1, or of another number.

    Raises:
        TypeError: If it is no integer, such as 2.0.
        ValueError: If it is less.
    """
    try:
        count = operator.index(cast("SupportsIndex", value))
    except TypeError:
        raise TypeError(
            f"Expected {name} to be an int, got {name}={shown(value)} ({type(value).__name__}). "
            "Pass a whole number."
        ) from None
    if count < least:
        raise ValueError(
            f"Expected {name} to be at least {least}, got {name}={count}. Pass {least} or more."
        )
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
            "Expected seed to be None or an int, the seed of the first row; the next "
            f"ones get seed + 1, seed + 2 and so on. Got seed={shown(seed)} "
            f"({type(seed).__name__}). Pass one int, or None."
        ) from None


def seed_within(env: Any, largest: int | None, seed: int | None) -> int | None:
    """The first row's seed, checked; for None a random one, if the environment does not take all.

    Args:
        env: The environment.
        largest: The largest seed of a row that it takes, or None.
        seed: The seed.

    Raises:
        ValueError: If it is negative, or the environment would refuse or ignore the last row's.
    """
    if largest is None:
        return seed
    most = largest - env.num_envs + 1
    if seed is None:
        # SB3 draws below 2**32 - 1.
        return int(np.random.randint(0, min(most + 1, 2**32 - 1), dtype=np.int64))
    if not 0 <= seed <= most:
        raise ValueError(
            f"Expected a seed from 0 to {most}, as {env} takes no seeds above {largest}, and its "
            f"{env.num_envs} rows get seed, seed + 1 and so on, got seed={seed}. Pass a seed in "
            "this range. Nothing was changed."
        )
    return seed


def counts_up(seeds: Seeds) -> bool:
    """Whether these are the seeds that a `VecEnv` derives from the first one."""
    first = seeds[0]
    return first is not None and list(seeds) == [first + i for i in range(len(seeds))]
