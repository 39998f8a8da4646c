"""How a space is laid out in batches: a list of leaf arrays. Small value objects.

A space that SB3 can batch is one leaf (Box, Discrete, MultiDiscrete, MultiBinary) or one flat
Dict or Tuple of leaves. Observations and actions work on the list of leaf arrays, so each rule is
written once for all spaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from gymnasium import spaces

from sb3compat._convert.types import Space
from sb3compat.errors import UnsupportedSpaceError

# The spaces whose elements are arrays or numbers, and whose batches are arrays.
ARRAYS = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


@dataclass(frozen=True)
class Leaf:
    """One array of a space: its name in messages, its shape, its dtype and its first value."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    # The first value of a Discrete or MultiDiscrete in Gymnasium; SB3 counts from 0.
    start: Any = None


class BatchLayout:
    """How a single space is laid out in batches of `num_envs` rows.

    Args:
        space: The single space, as the vector environment has it.
        num_envs: The number of rows, n.
        what: `"observation_space"` or `"action_space"`, for messages.
        from_zero: Whether spaces with another start are shifted to 0, as SB3 counts from 0.

    Raises:
        UnsupportedSpaceError: If SB3 cannot batch the space; the message names the part.
    """

    def __init__(self, space: Space, num_envs: int, what: str, *, from_zero: bool = True) -> None:
        self.num_envs = num_envs
        self.what = what
        # The space that SB3 gets: the same object, unless a part of it starts at another number.
        self.presented: Space = space
        self.keys: list[Any] | None = None
        self.kind: type[Space] = type(space)
        if isinstance(space, spaces.Dict | spaces.Tuple):
            is_dict = isinstance(space, spaces.Dict)
            inner: Any = space.spaces
            parts: list[tuple[Any, Space]] = list(inner.items() if is_dict else enumerate(inner))
            self.kind = spaces.Dict if is_dict else spaces.Tuple
            self.keys = [key for key, _ in parts]
            self.leaves = [_leaf(part, f"{what}[{key!r}]", space) for key, part in parts]
            if from_zero and is_dict:
                _refuse_shifted_goals(dict(zip(self.keys, self.leaves, strict=True)), space)
            shown = [_from_zero(part) for _, part in parts]
            if not self.counts_from_zero:
                self.presented = (
                    spaces.Dict(list(zip(self.keys, shown, strict=True)))  # a dict would be sorted
                    if is_dict
                    else spaces.Tuple(shown)
                )
        else:
            self.leaves = [_leaf(space, what, space)]
            self.presented = _from_zero(space)
        if not from_zero:
            self.leaves = [replace(leaf, start=None) for leaf in self.leaves]
            self.presented = space

    @property
    def starts(self) -> list[Any]:
        """The first value of each leaf."""
        return [
            np.asarray(0 if leaf.start is None else leaf.start).tolist() for leaf in self.leaves
        ]

    @property
    def counts_from_zero(self) -> bool:
        """Whether nothing is shifted."""
        return all(leaf.start is None for leaf in self.leaves)

    def unpack(self, value: Any) -> list[Any]:
        """The leaves of `value`, a single element or a batch."""
        if self.keys is None:
            return [value]
        return [value[key] for key in self.keys]

    def pack(self, leaves: Sequence[Any]) -> Any:
        """The inverse of `unpack`: an array, a plain dict or a tuple."""
        if self.keys is None:
            return leaves[0]
        if self.kind is spaces.Dict:
            return dict(zip(self.keys, leaves, strict=True))
        return tuple(leaves)


def _refuse_shifted_goals(leaves: dict[Any, Leaf], space: Space) -> None:
    """Refuse goals that SB3 would see shifted: it passes them to `compute_reward`."""
    goals = [leaves.get(key) for key in ("achieved_goal", "desired_goal")]
    if None not in goals and any(goal is not None and goal.start is not None for goal in goals):
        raise UnsupportedSpaceError(
            "Expected achieved_goal and desired_goal to count from 0, as Stable-Baselines3 does: "
            "hindsight experience replay passes them to the environment's compute_reward; got "
            f"observation_space={space}. Shift them by a wrapper on the sub-environments."
        )


def _leaf(space: Space, name: str, whole: Space) -> Leaf:
    if not isinstance(space, ARRAYS):
        nested = isinstance(space, spaces.Dict | spaces.Tuple)
        way_out = (
            "Flatten it, for example with gymnasium.wrappers.FlattenObservation on the "
            "sub-environments."
            if nested and name.startswith("observation")
            else "Change the space by a wrapper on the sub-environments."
        )
        raise UnsupportedSpaceError(
            f"Expected {name} to be a Box, Discrete, MultiDiscrete or MultiBinary (one Dict or "
            f"Tuple of them is allowed at the top), got {name}={space} "
            f"({'nested ' if nested and space is not whole else ''}{type(space).__name__}). "
            f"Stable-Baselines3 supports no other. {way_out}"
        )
    shape, dtype = space.shape, space.dtype
    assert shape is not None
    assert dtype is not None
    start = space.start if isinstance(space, spaces.Discrete | spaces.MultiDiscrete) else None
    return Leaf(name, shape, np.dtype(dtype), start if np.any(start) else None)


def _from_zero(space: Space) -> Space:
    """`space`, shifted to start at 0; the same object if it starts there already."""
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete) and np.any(space.start):
        shown: Any = deepcopy(space)
        shown.start = shown.start * 0
        return shown  # type: ignore[no-any-return]
    return space
