"""Gymnasium's `FunctionalJaxVectorEnv`, whose own reset ignores the mask and resets all rows."""

from __future__ import annotations

from sb3compat._convert.types import AnyVectorEnv, Flags, Options, VectorResetResult
from sb3compat._to_sb3.partial_reset import register_by_name
from sb3compat._to_sb3.traits import Traits, register_traits
from sb3compat._upstream import functional_jax_env


class ResetRows:
    """Resets the rows in the mask, as the environment's own autoreset does."""

    def __call__(
        self,
        env: AnyVectorEnv,
        mask: Flags,
        *,
        seed: int | None = None,
        options: Options | None = None,
    ) -> VectorResetResult:
        """Reset the rows in the mask."""
        return functional_jax_env.reset_rows(env, mask, seed=seed, options=options)

    after_reset = staticmethod(functional_jax_env.clear_pending)
    pending = staticmethod(functional_jax_env.pending)


_NAME = "gymnasium.envs.functional_jax_env.FunctionalJaxVectorEnv"
register_by_name(_NAME, ResetRows())
# `jax.random.PRNGKey` takes a C long.
register_traits(_NAME, Traits(largest_seed=2**63 - 1))
