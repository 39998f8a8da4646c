"""The arguments of a reset, as Gymnasium's users pass them; and its seeds, for a `VecEnv`."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sb3compat._convert.arguments import counts_up
from sb3compat._convert.types import Options, Seeds, is_own_vec_env
from sb3compat._rows.vec_env_subenvs import inherits_to_base
from sb3compat._upstream.vec_env import passes_seeds_and_options, set_waiting_seeds
from sb3compat.errors import ResetArgumentError, shown


def seeds_by_row(seed: Any, num_envs: int) -> list[int | None]:
    """The seed of each row.

    Args:
        seed: None, an int from which the seeds count up, or a list with one seed or None for each
            row.
        num_envs: The number of rows, n.

    Raises:
        ResetArgumentError: If the list has another length than n, or a seed is not an integer.
    """
    if seed is None:
        return [None] * num_envs
    if isinstance(seed, int | np.integer):
        return [int(seed) + i for i in range(num_envs)]
    try:
        seeds = [None if one is None else operator.index(one) for one in seed]
    except TypeError as error:
        raise ResetArgumentError(
            f"Expected an int, or a list of {num_envs} ints or None as seed, got "
            f"seed={shown(seed)} ({type(seed).__name__}). Pass one of these."
        ) from error
    if len(seeds) != num_envs:
        raise ResetArgumentError(
            f"Expected an int, or a list of {num_envs} seeds, one for each row, got "
            f"len(seed)={len(seeds)}. Pass one for each, or an int."
        )
    return seeds


def own_options(options: Any) -> Options | None:
    """A new dict with the user's options; the values are the same objects.

    Raises:
        ResetArgumentError: If they are no dict.
    """
    if options is None or isinstance(options, Mapping):
        return None if options is None else dict(options)
    raise ResetArgumentError(
        f"Expected options as a dict or None, got options={shown(options)} "
        f"({type(options).__name__}). Pass a dict."
    )


def rows_under(mask: object, num_envs: int) -> list[int]:
    """The rows of a reset mask.

    Args:
        mask: A NumPy array of shape `(n,)` and dtype bool, at least one element true.
        num_envs: The number of rows, n.

    Raises:
        ResetArgumentError: If the mask breaks one of these rules, which are Gymnasium's.
    """
    if not isinstance(mask, np.ndarray):
        got = f"reset_mask={shown(mask)} ({type(mask).__name__})"
    elif mask.shape != (num_envs,):
        got = f"reset_mask.shape={mask.shape}"
    elif mask.dtype != np.bool_:
        got = f"reset_mask.dtype={mask.dtype}"
    elif not mask.any():
        got = f"reset_mask={shown(mask)}"
    else:
        return list(map(int, np.flatnonzero(mask)))
    raise ResetArgumentError(
        f"Expected options['reset_mask'] to be a NumPy array of shape ({num_envs},) and dtype "
        f"bool, with at least one True, got {got}. Pass such an array, or leave the mask out to "
        "reset all rows."
    )


def values_by_row(values: Any, num_envs: int) -> Sequence[Any]:
    """The value of each row.

    Args:
        values: A list or tuple with one for each row, or else one value for all.
        num_envs: The number of rows, n.

    Raises:
        ValueError: If a list or tuple has another length than n.
    """
    if not isinstance(values, list | tuple):
        return [values] * num_envs
    if len(values) != num_envs:
        raise ValueError(
            f"Expected a list or tuple of {num_envs} values, one for each row, or one "
            f"value of another type, got len(values)={len(values)}. Pass a list of that length."
        )
    return values


def pass_seeds(vec_env: Any, base: Any, seeds: Seeds) -> None:
    """Give rows their seeds for the next reset.

    Args:
        vec_env: The environment.
        base: What is inside of its wrappers.
        seeds: The seed of each row, or None. If all are None, what waits in the `VecEnv` stays.
    """
    if all(seed is None for seed in seeds):
        return
    if counts_up(seeds):
        vec_env.seed(seeds[0])
    else:
        set_waiting_seeds(base, seeds)


def rows_take_seeds(vec_env: Any) -> bool:
    """Whether seeds that are set row by row reach the rows, by the methods of SB3 or `to_sb3`."""
    base = getattr(vec_env, "unwrapped", vec_env)
    if not inherits_to_base(vec_env, "seed"):
        return False
    return base.seeds_rows if is_own_vec_env(base) else passes_seeds_and_options(base)
