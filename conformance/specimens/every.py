"""The specimens of the matrix: all mutants, and the correct forms that they are changes of."""

from __future__ import annotations

from importlib import import_module

# In the order in which the page has them.
MODULES = tuple(
    import_module(f"conformance.specimens.{name}")
    for name in (
        "broken.vec_env_step",
        "broken.vec_env_episodes",
        "broken.vec_env_state",
        "broken.vec_env_access",
        "broken.vec_env_sb3",
        "broken.vec_env_alike",
        "broken.vec_env_long",
        "broken.vec_env_statistics",
        "broken.both",
        "broken.vector_env_basics",
        "broken.vector_env_rows",
        "broken.vector_env_resets",
        "broken.vector_env_endings",
        "broken.vector_env_alike",
        "broken.vector_env_long",
        "forms",
    )
)
