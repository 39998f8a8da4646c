"""The keys of infos that have a meaning in one of the APIs, and checks of infos.

How Gymnasium's dict of arrays becomes SB3's list of dicts is in `split_infos`, and the other way
in `join_infos`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from sb3compat._convert.arrays import copy_dict, copy_value
from sb3compat._convert.types import Info, Observation
from sb3compat.errors import ConversionError, shown

TRUNCATED = "TimeLimit.truncated"
TERMINAL_OBSERVATION = "terminal_observation"
# The keys under which SAME_STEP environments report the last observation: today's, and the older
# one.
FINAL_OBS_KEYS = ("final_obs", "final_observation")
FINAL_INFO = "final_info"
# The keys that SB3 adds to infos, and that Gymnasium's infos do not have.
SB3_KEYS = (TRUNCATED, TERMINAL_OBSERVATION)


def own_info(info: Info) -> Info:
    """A copy of an info, to be taken before other code runs that may change the info.

    Values that cannot be copied (a lock, a generator) are passed on uncopied, as in Gymnasium.
    """
    if _SCALARS.issuperset(map(type, info.values())):
        return dict(info)
    try:
        owned: Info = copy_dict(info)
    except Exception:
        owned = {key: own_value(value) for key, value in info.items()}
    return owned


def checked_info(info: Any) -> Info:
    """The info itself, which must be a dict or similar: Gymnasium and SB3 fail otherwise.

    Raises:
        ConversionError: If it is something else.
    """
    if not isinstance(info, Mapping):
        raise ConversionError(
            "Expected infos of sub-environments to be dicts, empty where there is nothing to say, "
            f"got {shown(info)}. Return {{}} instead."
        )
    return info  # type: ignore[return-value]


# The most common types of values, which need no copy.
_SCALARS = frozenset(
    (bool, int, float, str, type(None), np.float32, np.float64, np.int64, np.bool_)
)


def own_value(value: Any) -> Any:
    """A copy of a value, such as one of an info; the value itself if it cannot be copied."""
    try:
        return own_info(value) if type(value) is dict else copy_value(value)
    except Exception:
        return value


def refuse_final_keys(
    reset_info: Info,
    keys: Collection[str] = (FINAL_OBS_KEYS[0], FINAL_INFO),
    otherwise: str = ", or use autoreset_mode=AutoresetMode.NEXT_STEP",
) -> None:
    """Refuse reset infos with the keys under which SAME_STEP environments report an ending.

    Args:
        reset_info: The info of a reset.
        keys: The reserved keys.
        otherwise: An alternative to renaming them, for the message.

    Raises:
        ConversionError: If the info has a reserved key.
    """
    taken = sorted(set(keys).intersection(reset_info))
    if taken:
        raise ConversionError(
            f"Expected infos of a reset without the keys {taken}, which in SAME_STEP mode hold the "
            "last observation and info of an episode. Rename them in the sub-environment"
            f"{otherwise}."
        )


def same_step_info(final_obs: Observation, final_info: Info, reset_info: Info) -> Info:
    """The info of an ended row in SAME_STEP mode: the reset's info, with `final_info` added.

    The same in Gymnasium 1.1 to 1.4.

    Args:
        final_obs: The last observation; None where it is not known.
        final_info: The info of the step.
        reset_info: The info of the reset.

    Raises:
        ConversionError: If the reset info has one of the two keys itself.
    """
    refuse_final_keys(reset_info, otherwise="")
    final = {} if final_obs is None else {"final_obs": final_obs}
    return {**final, "final_info": dict(final_info), **reset_info}


def contains_itself(info: Mapping[Any, Any]) -> ConversionError:
    """The error to raise where a dict among infos contains itself, so that it has no batch."""
    return ConversionError(
        "Expected infos whose dicts do not contain themselves, got one with the keys "
        f"{shown(list(info))}. Leave it out of the infos."
    )
