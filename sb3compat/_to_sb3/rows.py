"""Functions of both row-by-row sources: the arguments of a reset, rewards, infos of a row."""

from __future__ import annotations

from sb3compat._convert.arrays import copy_value
from sb3compat._convert.infos import TERMINAL_OBSERVATION, TRUNCATED
from sb3compat._convert.types import Info, Kwargs, Options, Rewards, Value
from sb3compat.errors import ConversionError, shown


def own_info(info: Info, *, copy: bool) -> Info:
    """A new dict with the sub-environment's info."""
    return {key: copy_value(value) for key, value in info.items()} if copy else dict(info)


def step_info(info: Info, *, truncated: bool, copy: bool) -> Info:
    """The info of a step as SB3 has it; a `terminal_observation` in it is left out."""
    own = own_info(info, copy=copy)
    own.pop(TERMINAL_OBSERVATION, None)
    own[TRUNCATED] = truncated
    return own


def reset_kwargs(seed: int | None, options: Options) -> Kwargs:
    """The arguments that `DummyVecEnv` passes to a sub-environment's `reset`."""
    return {"seed": seed, "options": options} if options else {"seed": seed}


def set_reward(rewards: Rewards, row: int, reward: Value) -> None:
    """Store one reward; a value that is not one number is a `ConversionError`."""
    try:
        rewards[row] = reward
    except (TypeError, ValueError) as error:
        raise ConversionError(
            f"Expected the reward of row {row} to be one number, got reward={shown(reward)} "
            f"({type(reward).__name__}). Stable-Baselines3 knows no vector rewards: scalarise "
            "them in a wrapper around each sub-environment."
        ) from error
