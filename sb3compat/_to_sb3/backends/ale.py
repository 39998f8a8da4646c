"""ale-py's `AtariVectorEnv`: `options["reset_mask"]` resets just those rows, and returns all."""

from __future__ import annotations

from sb3compat._to_sb3.partial_reset import register_by_name, reset_with_mask

register_by_name("ale_py.vector_env.AtariVectorEnv", reset_with_mask)
