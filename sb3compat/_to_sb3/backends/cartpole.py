"""Gymnasium's native `CartPoleVectorEnv`, whose own reset ignores the mask."""

from __future__ import annotations

from typing import Any

import numpy as np

from sb3compat._convert.types import Array, Flags, Rows, VectorResetResult
from sb3compat._upstream.private import private

# The environment's own reset draws from these bounds, if its options say nothing else.
RESET_BOUND = 0.05


class ResetRows:
    """Resets the rows in the mask."""

    keeps_others = True

    def __call__(self, env: Any, mask: Flags) -> VectorResetResult:
        """Reset the rows in the mask as the environment's own reset does without options."""
        _draw(env, mask.nonzero()[0], -RESET_BOUND, RESET_BOUND)
        return private(env, "state").T.astype(np.float32), {}

    def restart(self, env: Any, mask: Flags, ended: Flags) -> VectorResetResult:
        """Reset the rows in the mask, as the autoreset does those that have ended.

        The autoreset draws from the bounds of the last reset of all rows, which its options may
        have changed.
        """
        self.restart_rows(env, (mask & ended).nonzero()[0])
        return self(env, mask & ~ended)

    def restart_rows(self, env: Any, rows: Rows) -> VectorResetResult:
        """Restart rows that have ended, and return their observations only."""
        return _draw(env, rows, private(env, "low"), private(env, "high")), {}


def _draw(env: Any, rows: Rows, low: float, high: float) -> Array:
    """Begin episodes in some rows, and return their observations."""
    drawn: Array = env.np_random.uniform(low=low, high=high, size=(4, len(rows)))
    private(env, "state")[:, rows] = drawn
    private(env, "steps")[rows] = 0
    private(env, "prev_done")[rows] = False
    return drawn.T.astype(np.float32)
