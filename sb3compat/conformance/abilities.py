"""What a `VectorEnv` can do beyond what every one must: found out by trying, before the checks."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from sb3compat.conformance import prelude


def masked_reset(env: Any) -> bool:
    """Whether it heeds `options["reset_mask"]`.

    Those that do not know it reset every row, or raise. With a single row that looks the same.
    """
    n = env.num_envs
    try:
        env.reset(seed=0)
        single = env.single_action_space
        stacked: Callable[..., Any] = prelude.stacked
        actions = stacked(single, [single.sample() for _ in range(n)])
        before = deepcopy(env.step(actions)[0])
        after, _ = env.reset(options={"reset_mask": np.arange(n) == 0})
        if isinstance(env.unwrapped, SyncVectorEnv | AsyncVectorEnv):
            return True
        same = _same_rows(env, before, after)
    except Exception:
        return False
    return n > 1 and not same[0] and all(same[1:])


def row_seeds(env: Any) -> bool:
    """Whether it takes a list of seeds, of which each concerns one row only."""
    seeds = list(range(env.num_envs))
    try:
        before = deepcopy(env.reset(seed=seeds)[0])
        after, _ = env.reset(seed=[*seeds[:-1], 1000])
        same = _same_rows(env, before, after)
    except Exception:
        return False
    return all(same[:-1]) and not same[-1]


def _same_rows(env: Any, a: Any, b: Any) -> list[bool]:
    equal: Callable[[Any, Any], bool] = prelude.equal
    part: Callable[[Any, Any, int], Any] = prelude.part
    single = env.single_observation_space
    return [equal(part(single, a, i), part(single, b, i)) for i in range(env.num_envs)]
