"""How much the observations of a VecEnv vary, so that checks do not mistake chance for evidence.

Equal first observations mean little where all are equal, and a lot where each reset draws new ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3compat.conformance.program.calls import acting
from sb3compat.conformance.program.instances import Instances
from sb3compat.conformance.program.script import PRELUDE

equal, row, snapshot = (PRELUDE[name] for name in ("equal", "row", "snapshot"))

_ROUNDS = 6
# If resets take long, fewer must do.
_FEWEST_ROUNDS, _LONG_RESET = 3, 0.1
_STEPS = 3


@dataclass(frozen=True)
class Traits:
    """The variation seen in a few resets, with some steps after each.

    Attributes:
        seeds_vary: No two first observations of a row after different seeds were equal.
        resets_vary: Without seeds each row began in more ways than one.
        resets_move: Each reset changed the observation of each row.
        continuous: The observations contain vectors of floats.
    """

    seeds_vary: bool = False
    resets_vary: bool = False
    resets_move: bool = False
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


def traits_of(
    instances: Instances, num_envs: int, seeding: bool, actions: str, reset_seconds: float
) -> Traits:
    """Reset and step a VecEnv a few times."""
    rounds = _ROUNDS if reset_seconds < _LONG_RESET else _FEWEST_ROUNDS
    try:
        with instances.lent() as (env, _):
            return _look(env, num_envs, rounds, rounds if seeding else 0, actions)
    except Exception:  # a check reports it
        return Traits()


def _look(env: Any, n: int, rounds: int, seeds: int, actions: str) -> Traits:
    def rows(obs: Any) -> list[object]:
        return [snapshot(row(obs, i)) for i in range(n)]

    act = acting(env, "env.action_space.seed(0)", actions)
    firsts: list[list[object]] = []
    seeded: list[list[object]] = []
    lasts: list[object] = []
    resets_move = True
    for _ in range(rounds):
        firsts.append(rows(env.reset()))
        for _ in range(_STEPS):
            obs, _rewards, _dones, _infos = env.step(act())
        resets_move &= not any(map(equal, lasts, firsts[-1]))
        lasts = rows(obs)
    for seed in range(seeds):
        env.seed(100 * seed)
        seeded.append(rows(env.reset()))
    return Traits(
        seeds_vary=bool(seeded) and _vary(seeded, n),
        resets_vary=not any(
            all(equal(first, one) for one in row) for first, *row in zip(*firsts, strict=True)
        ),
        resets_move=resets_move,
        continuous=floats(firsts[0][0]).size > 0,
    )


def _vary(rounds: list[list[object]], n: int) -> bool:
    """Whether no row repeated a value in two rounds."""
    return not any(
        equal(a[i], b[i]) for i in range(n) for k, a in enumerate(rounds) for b in rounds[:k]
    )
