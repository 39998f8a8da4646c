"""VectorEnvs that break one contract each, and the checks that have to fail them.

The kit has to fail each with the checks that it names, and with no other.
"""

from __future__ import annotations

from conformance.specimens.broken import (
    vector_env_alike,
    vector_env_basics,
    vector_env_endings,
    vector_env_resets,
    vector_env_rows,
)
from conformance.specimens.vector_env_registry import MUTANTS

__all__ = [
    "MUTANTS",
    "vector_env_alike",
    "vector_env_basics",
    "vector_env_endings",
    "vector_env_resets",
    "vector_env_rows",
]
