"""Gymnasium's `FunctionalJaxVectorEnv`, whose own reset ignores the mask and resets all rows."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from sb3compat._convert.types import Flags, VectorResetResult
from sb3compat._upstream.private import private, set_private


class ResetRows:
    """Resets the rows in the mask, as the environment's own autoreset does."""

    # `jax.random.PRNGKey` takes a C long.
    largest_seed = 2**63 - 1

    def __call__(self, env: Any, mask: Flags) -> VectorResetResult:
        """New states for the rows in the mask, drawn as the environment's own autoreset does."""
        functions = private(env, "func_env")
        rows = np.flatnonzero(mask)
        key, generator = jax.random.split(private(env, "rng"))
        initial = functions.initial(jax.random.split(key, len(rows)))
        state = jax.tree_util.tree_map(
            lambda state, new: state.at[rows].set(new), private(env, "state"), initial
        )
        set_private(env, "rng", generator)
        set_private(env, "state", state)
        set_private(env, "steps", private(env, "steps").at[rows].set(0))
        set_private(env, "prev_done", private(env, "prev_done").at[rows].set(False))
        # Without a split of its own, as in the environment's step.
        obs = functions.observation(state, jax.random.split(generator, env.num_envs))
        return obs, functions.state_info(state)

    def after_reset(self, env: Any) -> None:
        """After a reset of all rows, which leaves the autoreset of ended ones pending upstream."""
        set_private(env, "prev_done", jax.numpy.zeros(env.num_envs, dtype=bool))
