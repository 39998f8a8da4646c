"""VecEnvs that break one contract each, and the checks that have to fail them.

The kit has to fail each with the checks that it names, and with no other. A mutant that names
several breaks several contracts with one defect, and a comment says why.
"""

from __future__ import annotations

from conformance.specimens.broken import (
    vec_env_access,
    vec_env_alike,
    vec_env_episodes,
    vec_env_state,
    vec_env_step,
)
from conformance.specimens.registry import MUTANTS

__all__ = [
    "MUTANTS",
    "vec_env_access",
    "vec_env_alike",
    "vec_env_episodes",
    "vec_env_state",
    "vec_env_step",
]
