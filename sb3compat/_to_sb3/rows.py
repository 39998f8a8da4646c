"""Functions of both row-by-row sources: the arguments of a reset, rewards, infos of a row."""

from __future__ import annotations

from typing import Any

from sb3compat._convert.infos import TERMINAL_OBSERVATION, TRUNCATED, checked_info
from sb3compat._convert.types import Info, Kwargs, Options, Rewards
from sb3compat.errors import ConversionError, shown


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
