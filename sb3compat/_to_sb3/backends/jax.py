"""Gymnasium's `FunctionalJaxVectorEnv`, whose own reset ignores the mask and resets all rows."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from sb3compat._to_sb3.partial_reset import Mask, register_by_name


def reset_rows(
    env: Any, mask: Mask, *, seed: Any = None, options: dict[str, Any] | None = None
) -> tuple[Any, dict[str, Any]]:
    """New states for the rows in `mask`, drawn as the environment's own autoreset draws them."""
    if options:
        raise ValueError(f"Expected no options, as {env} takes none in a reset, got {options}.")
    if seed is not None:
        env.rng = jax.random.PRNGKey(seed)
    rows = np.flatnonzero(mask)
    key, env.rng = jax.random.split(env.rng)
    initial = env.func_env.initial(jax.random.split(key, len(rows)))
    env.state = jax.tree_util.tree_map(
        lambda state, new: state.at[rows].set(new), env.state, initial
    )
    env.steps = env.steps.at[rows].set(0)
    env.prev_done = env.prev_done.at[rows].set(False)
    # Without a split of its own, as in the environment's step.
    obs = env.func_env.observation(env.state, jax.random.split(env.rng, env.num_envs))
    return obs, env.func_env.state_info(env.state)


def clear_pending(env: Any) -> None:
    """After a reset of all rows, which leaves the autoreset of ended ones pending upstream."""
    env.prev_done = jax.numpy.zeros(env.num_envs, dtype=bool)


reset_rows.after_reset = clear_pending  # type: ignore[attr-defined]
register_by_name("gymnasium.envs.functional_jax_env.FunctionalJaxVectorEnv", reset_rows)
