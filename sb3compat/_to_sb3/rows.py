"""Functions of both row-by-row sources: the arguments of a reset, rewards, infos of a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from sb3compat._convert.infos import TERMINAL_OBSERVATION, TRUNCATED, checked_info
from sb3compat._convert.types import (
    AnyVectorEnv,
    Flags,
    Info,
    Kwargs,
    Options,
    Rewards,
)
from sb3compat.errors import CallOrderError, ConversionError, shown


def received_info(info: Info) -> Info:
    """An info that a worker has sent, which is ours, as a plain dict."""
    return info if type(info) is dict else dict(checked_info(info))


def step_info(own: Info, *, truncated: bool) -> Info:
    """Turn the info of a step to what SB3 has; a `terminal_observation` in it is left out."""
    own.pop(TERMINAL_OBSERVATION, None)
    own[TRUNCATED] = truncated
    return own


def reset_kwargs(seed: int | None, options: Options) -> Kwargs:
    """The arguments that `DummyVecEnv` passes to a sub-environment's `reset`."""
    return {"seed": seed, "options": options} if options else {"seed": seed}


def refuse_pending(env: AnyVectorEnv, pending: Flags | None) -> None:
    """Refuse a first step without a reset, where the next step of some rows is an autoreset.

    Args:
        env: The environment, for the message.
        pending: The rows; None where that is not known.

    Raises:
        CallOrderError: If there are some, or if it is not known.
    """
    if pending is not None and not pending.any():
        return
    reason = (
        f"whether an autoreset of {env} is pending from earlier steps cannot be known"
        if pending is None
        else f"the episodes of the rows {shown(np.flatnonzero(pending).tolist())} of {env} ended "
        "before it was adapted, and these rows have not been reset since"
    )
    raise CallOrderError(
        f"Expected reset() before the first step: {reason}. Nothing was stepped. Call env.reset() "
        "first."
    )


def set_reward(rewards: Rewards, row: int, reward: Any, *, first: int = 0) -> None:
    """Store one reward; a value that is not one number is a `ConversionError`.

    Messages count the rows from `first` on.
    """
    try:
        rewards[row] = reward
    except (TypeError, ValueError) as error:
        raise ConversionError(
            f"Expected the reward of row {first + row} to be one number, got reward="
            f"{shown(reward)} ({type(reward).__name__}). Stable-Baselines3 does not support vector "
            "rewards: combine them to one number in a wrapper around each sub-environment."
        ) from error
