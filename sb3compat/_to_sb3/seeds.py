"""The range of seeds of environments that do not take every seed."""

from __future__ import annotations

import operator

import numpy as np

from sb3compat._convert.types import AnyVectorEnv
from sb3compat._to_sb3.partial_reset import largest_first_seed

# SB3 draws random seeds below this.
_SB3_BELOW = 2**32 - 1


def check_seed(env: AnyVectorEnv, seed: int) -> None:
    """Refuse a seed of the first row that the environment would refuse or ignore.

    Raises:
        ValueError: If it is negative, or that of the last row is too large.
    """
    most = largest_first_seed(env)
    if most is not None and not 0 <= seed <= most:
        raise ValueError(
            f"Expected a seed from 0 to {most}, as {env} takes no seeds above "
            f"{most + env.num_envs - 1}, and its {env.num_envs} rows get seed, seed + 1 and so on, "
            f"got seed={seed}. Nothing was changed."
        )


def seed_within(env: AnyVectorEnv, seed: int | None) -> int | None:
    """The first row's seed, checked; for None a random one, if the environment does not take all.

    Raises:
        ValueError: As `check_seed`.
    """
    most = largest_first_seed(env)
    if most is None:
        return seed
    if seed is None:
        return int(np.random.randint(0, min(most + 1, _SB3_BELOW), dtype=np.int64))
    check_seed(env, operator.index(seed))
    return operator.index(seed)
