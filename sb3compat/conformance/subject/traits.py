"""How much the observations of a VecEnv vary, so that checks do not mistake chance for evidence.

Equal first observations mean little where all are equal, and a lot where each reset draws new ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3compat.conformance.program.instances import Instances
from sb3compat.conformance.program.script import PRELUDE

equal, row, snapshot = (PRELUDE[name] for name in ("equal", "row", "snapshot"))

_ROUNDS = 6
# If resets take long, fewer must do.
_FEWEST_ROUNDS, _LONG_RESET = 3, 0.1


@dataclass(frozen=True)
class Traits:
    """The variation seen in a few resets.

    Attributes:
        seeds_vary: No two first observations of a row after different seeds were equal.
        continuous: The observations contain vectors of floats.
    """

    seeds_vary: bool = False
    continuous: bool = False


def floats(obs: object) -> NDArray[np.float64]:
    """The vectors of floats in an observation; images and integers repeat too easily."""
    if isinstance(obs, dict | list | tuple):
        parts = [floats(part) for part in (obs.values() if isinstance(obs, dict) else obs)]
        return np.concatenate([np.zeros(0), *parts])
    array = np.asarray(obs)
    if array.dtype.kind != "f" or array.ndim != 1 or array.size < 2:
        return np.zeros(0)
    return array.astype(np.float64)


def traits_of(instances: Instances, num_envs: int, seeding: bool, reset_seconds: float) -> Traits:
    """Reset a VecEnv under a few seeds."""
    rounds = _ROUNDS if reset_seconds < _LONG_RESET else _FEWEST_ROUNDS
    try:
        with instances.lent() as (env, _):
            return _look(env, num_envs, rounds if seeding else 0)
    except Exception:  # a check reports it
        return Traits()


def _look(env: Any, n: int, rounds: int) -> Traits:
    continuous = floats(row(env.reset(), 0)).size > 0
    starts: list[list[object]] = []
    for seed in range(rounds):
        env.seed(100 * seed)
        obs = env.reset()
        starts.append([snapshot(row(obs, i)) for i in range(n)])
    return Traits(seeds_vary=bool(starts) and _vary(starts, n), continuous=continuous)


def _vary(rounds: list[list[object]], n: int) -> bool:
    """Whether no row repeated a value in two rounds."""
    return not any(
        equal(a[i], b[i]) for i in range(n) for k, a in enumerate(rounds) for b in rounds[:k]
    )
