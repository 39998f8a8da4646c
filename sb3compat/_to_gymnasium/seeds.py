"""Pass a seed to each row of a `VecEnv`, whose own `seed` takes only the first row's."""

from __future__ import annotations

from typing import Any

from sb3compat._convert.types import Seeds, is_own_vec_env
from sb3compat._rows.vec_env_subenvs import inherits_to_base
from sb3compat._upstream.vec_env import passes_seeds_and_options, set_waiting_seeds


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


def counts_up(seeds: Seeds) -> bool:
    """Whether these are the seeds that a `VecEnv` derives from the first one."""
    first = seeds[0]
    return first is not None and list(seeds) == [first + i for i in range(len(seeds))]


def rows_take_seeds(vec_env: Any) -> bool:
    """Whether seeds that are set row by row reach the rows, by the methods of SB3 or `to_sb3`."""
    base = getattr(vec_env, "unwrapped", vec_env)
    if not inherits_to_base(vec_env, "seed"):
        return False
    return base.seeds_rows if is_own_vec_env(base) else passes_seeds_and_options(base)
