"""The private state of `SyncVectorEnv` between two calls. The same in Gymnasium 1.1 to 1.4."""

from __future__ import annotations

from typing import Any

from sb3compat._convert.types import AnySync, AnyVectorEnv, Array, Info, Observation
from sb3compat._upstream.private import private


def held_observations(env: AnySync) -> list[Observation]:
    """The last observation of each row, in the environment's own list."""
    held: list[Observation] = private(env, "_env_obs")
    return held


def shared_batch(env: AnySync) -> Observation:
    """The environment's own batch of observations, which it writes into."""
    return private(env, "_observations")


def autoreset_flags(env: AnyVectorEnv) -> Array:
    """Which rows an autoreset is pending for; a new array from each step and each full reset."""
    flags: Array = private(env, "_autoreset_envs")
    return flags


def forget_endings(env: AnySync, rows: Any = slice(None)) -> None:
    """Clear the flags of the last step for some rows, or all, and their pending autoresets."""
    private(env, "_terminations")[rows] = False
    private(env, "_truncations")[rows] = False
    autoreset_flags(env)[rows] = False


def add_info(env: AnyVectorEnv, infos: Info, info: Info, row: int) -> Info:
    """The infos of a vector environment with those of one row added, as Gymnasium batches them."""
    joined: Info = private(env, "_add_info")(infos, info, row)
    return joined
