"""The specimens of the matrix: all mutants, and the correct forms that they are changes of.

They are imported here by their names, so that the digest of the matrix is of them, too.
"""

from __future__ import annotations

from conformance.specimens import forms
from conformance.specimens.broken import (
    vec_env_access,
    vec_env_alike,
    vec_env_episodes,
    vec_env_long,
    vec_env_sb3,
    vec_env_state,
    vec_env_statistics,
    vec_env_step,
    vector_env_alike,
    vector_env_basics,
    vector_env_endings,
    vector_env_long,
    vector_env_resets,
    vector_env_rows,
)

MODULES = (
    vec_env_step,
    vec_env_episodes,
    vec_env_state,
    vec_env_access,
    vec_env_sb3,
    vec_env_alike,
    vec_env_long,
    vec_env_statistics,
    vector_env_basics,
    vector_env_rows,
    vector_env_resets,
    vector_env_endings,
    vector_env_alike,
    vector_env_long,
    forms,
)
