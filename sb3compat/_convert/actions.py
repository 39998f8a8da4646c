"""Check, cast and split batches of actions, by space. Pure functions and a small value object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from sb3compat._convert.arrays import cast_safely, to_numpy
from sb3compat._convert.spaces import ARRAYS, BatchLayout, Leaf
from sb3compat._convert.types import Action, Array, Space
from sb3compat.errors import ActionsError, shown

_UNSTEPPED = "Nothing was stepped. Pass one action of the space for each row."


class Actions(BatchLayout):
    """Checks and casts batches of actions, and splits them into single actions."""

    def __init__(self, space: Space, num_envs: int) -> None:
        super().__init__(space, num_envs, "action_space")

    def prepare(self, actions: Action) -> list[Array]:
        """Check and copy the user's actions, before anything is sent to a sub-environment.

        Args:
            actions: A batch: arrays of shape `(n, *leaf.shape)`, in a dict or tuple where the
                space is one. Or a list of `n` single actions.

        Returns:
            One new array for each leaf, of the space's dtype, counted from the space's start.

        Raises:
            ValueError: If the count, the shape or the dtype does not fit; nothing was sent.
        """
        per_row = isinstance(actions, list) or (
            isinstance(actions, np.ndarray) and actions.dtype.hasobject
        )
        if per_row and len(actions) != self.num_envs:
            raise ValueError(
                f"Expected {self.num_envs} actions, one for each row, got "
                f"len(actions)={len(actions)}. {_UNSTEPPED}"
            )
        if self.keys is None:
            values = [actions]
        elif len(self.keys) == self.num_envs and _are_tuples(actions):
            raise ValueError(
                f"Expected a list of {self.num_envs} actions, or a tuple of {self.num_envs} arrays "
                "with a part of all actions each, got a tuple of tuples, which may be either: "
                f"{shown(actions)}. {_UNSTEPPED}"
            )
        elif per_row:
            rows = [self._parts(action, f"actions[{i}]") for i, action in enumerate(actions)]
            values = [list(column) for column in zip(*rows, strict=True)]
        else:
            values = self._parts(actions, "actions")
        return [self._leaf(leaf, value) for leaf, value in zip(self.leaves, values, strict=True)]

    def rows(self, batch: list[Array]) -> list[Action]:
        """The single actions: NumPy scalars or arrays, in a dict or tuple where the space is."""
        if self.keys is None:
            return list(batch[0])
        return [self.pack(leaves) for leaves in _transposed(batch, self.num_envs)]

    def _parts(self, value: object, name: str) -> list[Action]:
        assert self.keys is not None
        expected = dict if self.kind is spaces.Dict else tuple
        if not isinstance(value, expected) or len(value) != len(self.keys):
            raise ValueError(
                f"Expected {name} to be a {expected.__name__} with the keys {self.keys}, or a list "
                f"of {self.num_envs} such actions, got {shown(value)} ({type(value).__name__}). "
                f"{_UNSTEPPED}"
            )
        missing = [key for key in self.keys if isinstance(value, dict) and key not in value]
        if missing:
            raise ValueError(
                f"Expected {name} to have the keys {self.keys}, missing: {missing}. {_UNSTEPPED}"
            )
        return self.unpack(value)

    def _leaf(self, leaf: Leaf, value: Any) -> Array:
        expected = (self.num_envs, *leaf.shape)
        is_plain = type(value) is np.ndarray and value.shape == expected
        if is_plain and value.dtype == leaf.dtype and leaf.start is None:
            copied: Array = value.copy()
            return copied
        name = leaf.name.replace("action_space", "actions")
        try:
            array = np.asarray(to_numpy(value))
        except ValueError as error:  # ragged lists
            raise ValueError(
                f"Expected {name} of one shape in all rows: {error}. {_UNSTEPPED}"
            ) from error
        if array.shape != expected:
            got = f".shape={array.shape}" if array.shape else f"={shown(value)}"
            raise ValueError(
                f"Expected {name}.shape={expected} (one action for each of the {self.num_envs} "
                f"rows), got {name}{got}. {_UNSTEPPED}"
            )
        cast = cast_safely(array, leaf.dtype)
        if cast is None:
            way = "Pass numbers."
            if array.dtype.kind in "buifc":
                way = "Cast the actions yourself if the loss is intended."
            raise ValueError(
                f"Expected {name} of a dtype that casts to {leaf.dtype} without loss, got "
                f"{name}.dtype={array.dtype}. Nothing was stepped. {way}"
            )
        if leaf.start is not None:
            cast += np.asarray(leaf.start, leaf.dtype)
        return cast


def _are_tuples(actions: Action) -> bool:
    return isinstance(actions, tuple) and all(isinstance(each, tuple) for each in actions)


def action_rows(space: Space, actions: Action, num_envs: int) -> list[Action]:
    """The single actions of a batch, as Gymnasium's `iterate` would return them: not cast.

    Args:
        space: The space of a single action.
        actions: A batch: anything of length n; a dict or tuple of such batches where the space is
            one. Or a list of n single actions.
        num_envs: The number of rows, n.

    Raises:
        ActionsError: If their count does not fit, or a part is missing.
    """
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return list(_of_length(actions, num_envs))
    is_dict = isinstance(space, spaces.Dict)
    inner: Any = space.spaces
    parts: list[tuple[Any, Space]] = list(inner.items() if is_dict else enumerate(inner))
    kind = dict if is_dict else tuple
    listed = isinstance(actions, list | np.ndarray)
    if listed and all(isinstance(action, kind) for action in actions):
        if not is_dict and isinstance(actions, list) and 1 < num_envs == len(parts) == len(actions):
            # Gymnasium's `iterate` takes them for the parts, whatever they were meant to be.
            raise ActionsError(
                f"Expected a tuple of {num_envs} arrays with a part of all actions each, or an "
                f"array of {num_envs} actions with dtype=object, got a list of tuples, which may "
                f"be either parts or actions: {shown(actions)}. {_UNSTEPPED}"
            )
        return list(_of_length(actions, num_envs))
    if not (isinstance(actions, Mapping) if is_dict else isinstance(actions, tuple | list)) or (
        len(actions) != len(parts) or (is_dict and any(key not in actions for key, _ in parts))
    ):
        raise ActionsError(
            f"Expected actions as a {kind.__name__} with the keys {[key for key, _ in parts]}, or "
            f"as a list of {num_envs} such actions, got {shown(actions)} "
            f"({type(actions).__name__}). {_UNSTEPPED}"
        )
    columns = [action_rows(part, actions[key], num_envs) for key, part in parts]
    rows = _transposed(columns, num_envs)
    if is_dict:
        keys = [key for key, _ in parts]
        return [dict(zip(keys, row, strict=True)) for row in rows]
    return rows


def _transposed(columns: Sequence[Iterable[Any]], num_envs: int) -> list[tuple[Any, ...]]:
    """The values of each row; an empty Dict or Tuple has no column to count the rows by."""
    return list(zip(*columns, strict=True)) if columns else [()] * num_envs


def action_batch(space: Space, actions: Action, num_envs: int) -> Action:
    """Actions as a `VecEnv` takes them: an array, or a list where single actions are no arrays.

    Args and errors as for `action_rows`.
    """
    if not isinstance(space, ARRAYS):
        own = isinstance(actions, np.ndarray) and not isinstance(space, spaces.Dict | spaces.Tuple)
        return actions if own else action_rows(space, actions, num_envs)
    _of_length(actions, num_envs)
    if isinstance(actions, np.ndarray):
        return actions
    try:
        array = np.asarray(to_numpy(actions))
    except ValueError as error:  # ragged
        raise ActionsError(
            f"Expected actions of one shape in all rows: {error}. {_UNSTEPPED}"
        ) from error
    if not array.shape:  # made of something that has a length and no order, such as a set
        raise _wrong_number(actions, num_envs)
    return array


def _of_length(actions: Action, num_envs: int) -> Action:
    if _length(actions) != num_envs:
        raise _wrong_number(actions, num_envs)
    return actions


def _length(actions: Action) -> int | None:
    try:
        return len(actions)
    except TypeError:
        return None


def _wrong_number(actions: Action, num_envs: int) -> ActionsError:
    count = _length(actions)
    return ActionsError(
        f"Expected {num_envs} actions, one for each row, got "
        f"{f'len(actions)={count}' if count is not None else f'actions={shown(actions)}'} "
        f"({type(actions).__name__}). {_UNSTEPPED}"
    )
