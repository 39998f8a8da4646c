"""Detect last observations that the following reset has overwritten: an error, or a warning."""

from __future__ import annotations

from typing import Any

import numpy as np

from sb3compat._convert.arrays import leaves_of
from sb3compat._convert.observations import Observations
from sb3compat._convert.types import Array, Observation
from sb3compat.errors import ConversionError, warn


def refuse_same_memory(row: int, first: Observation, final: Observation) -> None:
    """Refuse a last observation that shares its memory with the observation of the reset.

    A vector wrapper may have given the last one another structure. The parts that both have are
    then compared; if there are none, each part with all of the other.
    """
    finals, firsts = (
        {at: leaf for at, leaf in leaves_of(obs).items() if isinstance(leaf, np.ndarray)}
        for obs in (final, first)
    )
    common = finals.keys() & firsts.keys()
    # One array among several may be the same by design: a goal that never changes.
    if common:
        shared = all(np.shares_memory(finals[at], firsts[at]) for at in common)
    else:
        shared = _all_shared(finals, firsts) or _all_shared(firsts, finals)
    if shared or (final is first and isinstance(final, dict | list)):
        raise ConversionError(
            f"Expected the sub-environment of row {row} to return a new observation from reset, "
            "got the same array (or dict, or list) that its last step returned: the last "
            f"observation of the episode is overwritten. {_RETURN_COPIES}"
        )


def _all_shared(arrays: dict[Any, Array], others: dict[Any, Array]) -> bool:
    return bool(arrays) and all(
        any(np.shares_memory(array, other) for other in others.values())
        for array in arrays.values()
    )


class RepeatWatch:
    """Warns once of last observations that look overwritten by the reset.

    A last observation that equals the first one of the next episode is suspicious. One is enough
    for the warning if the observation has floats or many numbers. A few small integers repeat by
    chance: there, all of the first `_REPEATS` endings have to be suspicious.

    Args:
        advice: What to do about it.
    """

    def __init__(self, advice: str | None = None) -> None:
        self._advice = _RETURN_COPIES if advice is None else advice
        self._endings = 0
        self._done = False

    def note(
        self, row: int, observations: Observations, final: Observation, batch: list[Array]
    ) -> None:
        """Take note of one ending."""
        if self._done:
            return
        self._endings += 1
        if not observations.repeats(batch, row, final):
            # For small integers, one ending that differs is enough; floats are always compared.
            self._done = observations.repeats_by_chance
        elif not observations.repeats_by_chance or self._endings >= _REPEATS:
            self._done = True
            warn(
                f"The last observation of row {row} equals the first one of its next episode. If "
                "that is not by design, the sub-environment returns the same array from each step "
                "and reset, or the vector environment reports the reset observation as the last "
                f"one. {self._advice}"
            )


_REPEATS = 8
_RETURN_COPIES = (
    "Return copies from the sub-environments, or build the vector environment with "
    "autoreset_mode=AutoresetMode.NEXT_STEP."
)
