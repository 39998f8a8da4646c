"""What a `VectorEnv` can do beyond what every one must: found out by trying, before the checks."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from sb3compat.conformance import prelude

_MOST_STEPS = 20


def masked_reset(env: Any) -> bool:
    """Whether it heeds `options["reset_mask"]`.

    Those that do not know it reset every row, or raise. With a single row that looks the same.
    """
    try:
        if isinstance(env.unwrapped, SyncVectorEnv | AsyncVectorEnv):
            env.reset(seed=0)
            env.reset(options={"reset_mask": np.arange(env.num_envs) == 0})
            return True
        return env.num_envs > 1 and all(_resets_the_first_row_alone(env, seed) for seed in range(3))
    except Exception:
        return False


def _resets_the_first_row_alone(env: Any, seed: int) -> bool:
    """Likewise, once; a row is only told apart where it has left the place where it began."""
    first = deepcopy(env.reset(seed=seed)[0])
    stacked: Callable[[Any, list[Any]], Any] = prelude.stacked
    single = env.single_action_space
    single.seed(seed)
    for _ in range(_MOST_STEPS):
        actions = stacked(single, [single.sample() for _ in range(env.num_envs)])
        before, _, terminations, truncations, _ = env.step(actions)
        if np.any(terminations) or np.any(truncations):
            return False
        if not any(_same_rows(env, first, before)):
            break
    else:
        return False
    before = deepcopy(before)
    after, _ = env.reset(options={"reset_mask": np.arange(env.num_envs) == 0})
    same = _same_rows(env, before, after)
    return not same[0] and all(same[1:])


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
