"""The state of Gymnasium's `FunctionalJaxVectorEnv`, whose own reset ignores the mask."""

from __future__ import annotations

import jax
import numpy as np

from sb3compat._convert.types import Flags, Info, Options, Value
from sb3compat._upstream.private import private


def reset_rows(
    env: Value, mask: Flags, *, seed: int | None = None, options: Options | None = None
) -> tuple[Value, Info]:
    """New states for the rows in `mask`, drawn as the environment's own autoreset draws them.

    Raises:
        ValueError: If options are given, as the environment takes none.
    """
    if options:
        raise ValueError(f"Expected no options, as {env} takes none in a reset, got {options}.")
    functions, generator = private(env, "func_env"), private(env, "rng")
    if seed is not None:
        generator = jax.random.PRNGKey(seed)
    rows = np.flatnonzero(mask)
    key, env.rng = jax.random.split(generator)
    initial = functions.initial(jax.random.split(key, len(rows)))
    env.state = jax.tree_util.tree_map(
        lambda state, new: state.at[rows].set(new), private(env, "state"), initial
    )
    env.steps = private(env, "steps").at[rows].set(0)
    env.prev_done = private(env, "prev_done").at[rows].set(False)
    # Without a split of its own, as in the environment's step.
    obs = functions.observation(env.state, jax.random.split(env.rng, env.num_envs))
    return obs, functions.state_info(env.state)


def pending(env: Value) -> Value:
    """The rows whose autoreset is pending."""
    return private(env, "prev_done")


def clear_pending(env: Value) -> None:
    """After a reset of all rows, which leaves the autoreset of ended ones pending upstream."""
    private(env, "prev_done")
    env.prev_done = jax.numpy.zeros(env.num_envs, dtype=bool)
