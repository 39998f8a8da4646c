"""Gymnasium's native `CartPoleVectorEnv`, whose own reset ignores the mask."""

from __future__ import annotations

from sb3compat._to_sb3.partial_reset import register_by_name
from sb3compat._upstream.cartpole import reset_rows

register_by_name("gymnasium.envs.classic_control.cartpole.CartPoleVectorEnv", reset_rows)
