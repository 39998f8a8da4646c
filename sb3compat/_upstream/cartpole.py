"""The state of Gymnasium's native `CartPoleVectorEnv`, whose own reset ignores the mask."""

from __future__ import annotations

import numpy as np
from gymnasium.envs.classic_control import utils
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from gymnasium.vector import VectorEnv

from sb3compat._convert.types import Flags, Info, Options, Value
from sb3compat._upstream.private import private


def reset_rows(
    env: CartPoleVectorEnv, mask: Flags, *, seed: Value = None, options: Options | None = None
) -> tuple[Value, Info]:
    """Reset the rows in `mask` as the environment's own reset does, and leave the others alone."""
    if seed is not None:
        VectorEnv.reset(env, seed=seed)
    low, high = private(utils, "maybe_parse_reset_bounds")(options, -0.05, 0.05)
    return _start(env, mask, low, high)


def restart_rows(env: CartPoleVectorEnv, mask: Flags, ended: Flags) -> tuple[Value, Info]:
    """Reset the rows in `mask`, as its autoreset does those that have ended.

    That draws from the bounds of the last reset of all rows, which its options may have moved.
    """
    own, others = mask & ended, mask & ~ended
    result = _start(env, own, private(env, "low"), private(env, "high"))
    return reset_rows(env, others) if others.any() else result


def pending(env: CartPoleVectorEnv) -> Flags:
    """The rows whose autoreset is pending."""
    flags: Flags = private(env, "prev_done")
    return flags


def _start(env: CartPoleVectorEnv, mask: Flags, low: float, high: float) -> tuple[Value, Info]:
    """Begin episodes in some rows."""
    (rows,) = mask.nonzero()
    state = private(env, "state")
    state[:, rows] = env.np_random.uniform(low=low, high=high, size=(4, len(rows)))
    private(env, "steps")[rows] = 0
    private(env, "prev_done")[rows] = False
    return state.T.astype(np.float32), {}
