"""Gymnasium's `FunctionalJaxVectorEnv`, whose own reset ignores the mask and resets all rows."""

from __future__ import annotations

from sb3compat._convert.types import AnyVectorEnv, Flags, Options, VectorResetResult
from sb3compat._to_sb3.partial_reset import register_by_name
from sb3compat._upstream import functional_jax_env


class ResetRows:
    """Resets the rows in the mask, as the environment's own autoreset does."""

    # `jax.random.PRNGKey` takes a C long.
    largest_seed = 2**63 - 1

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


register_by_name("gymnasium.envs.functional_jax_env.FunctionalJaxVectorEnv", ResetRows())
