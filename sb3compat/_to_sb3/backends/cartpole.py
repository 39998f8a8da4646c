"""Gymnasium's native `CartPoleVectorEnv`, whose own reset ignores the mask."""

from __future__ import annotations

from sb3compat._convert.types import Flags, Options, Value, VectorResetResult
from sb3compat._to_sb3.partial_reset import register_by_name
from sb3compat._upstream import cartpole


class ResetRows:
    """Resets the rows in the mask."""

    def __call__(
        self, env: Value, mask: Flags, *, seed: Value = None, options: Options | None = None
    ) -> VectorResetResult:
        """Reset the rows in the mask."""
        return cartpole.reset_rows(env, mask, seed=seed, options=options)

    restart = staticmethod(cartpole.restart_rows)
    pending = staticmethod(cartpole.pending)


register_by_name("gymnasium.envs.classic_control.cartpole.CartPoleVectorEnv", ResetRows())
