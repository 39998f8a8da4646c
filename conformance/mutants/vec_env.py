"""VecEnvs that break one contract each, and the checks that have to say so.

The kit has to fail each with the checks that are named, and with no other. Where there is more than
one, one defect breaks several contracts, and the comment says why.
"""

from __future__ import annotations

from conformance.mutants import (
    vec_env_access,
    vec_env_episodes,
    vec_env_state,
    vec_env_step,
)
from conformance.mutants.registry import MUTANTS

__all__ = [
    "MUTANTS",
    "vec_env_access",
    "vec_env_episodes",
    "vec_env_state",
    "vec_env_step",
]
