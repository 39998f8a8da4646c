"""VecEnvs that break one contract each, and the checks that have to say so.

`MUTANTS` maps a name to a factory and the ids of the checks which must fail, and no others. Where
there is more than one id, one defect breaks several contracts, and the comment says why.
`NEED_REFERENCE` names those which only the single environments can bring to light.
"""

from __future__ import annotations

from conformance.mutants import (
    vec_env_access,
    vec_env_episodes,
    vec_env_state,
    vec_env_step,
)
from conformance.mutants.family import OPTIONS, Config, Points, reference
from conformance.mutants.registry import MUTANTS, NEED_REFERENCE, config_of

__all__ = [
    "MUTANTS",
    "NEED_REFERENCE",
    "OPTIONS",
    "Config",
    "Points",
    "config_of",
    "reference",
    "vec_env_access",
    "vec_env_episodes",
    "vec_env_state",
    "vec_env_step",
]
