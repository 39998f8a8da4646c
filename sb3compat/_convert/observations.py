"""Observations and actions, batched and single, by space. Pure functions and small value objects.

A space that SB3 can batch is one leaf (Box, Discrete, MultiDiscrete, MultiBinary) or one flat
Dict or Tuple of leaves. Everything here works on the list of leaf arrays, so each rule is written
once for all spaces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from sb3compat._convert.arrays import copy_value, is_foreign_array, to_numpy
from sb3compat.errors import ConversionError, UnsupportedSpaceError

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.intp]
Space = spaces.Space[Any]

_LEAVES = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


@dataclass(frozen=True)
class Leaf:
    """One array of a space: its name in messages, its shape, its dtype and its first value."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    # What Gymnasium counts a Discrete or MultiDiscrete from; SB3 counts from 0.
    start: Any = None


class BatchLayout:
    """How a single space is laid out in batches of `num_envs` rows.

    Args:
        space: The single space, as the vector environment has it.
        num_envs: The number of rows, n.
        what: `"observation_space"` or `"action_space"`, for messages.
        from_zero: Whether what counts from elsewhere is shifted, as SB3 counts from 0.

    Raises:
        UnsupportedSpaceError: If SB3 cannot batch the space; the message names the part.
    """

    def __init__(self, space: Space, num_envs: int, what: str, *, from_zero: bool = True) -> None:
        self.num_envs = num_envs
        self.what = what
        # The space that SB3 is shown: the same object, unless something counts from elsewhere.
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
            shown = [_from_zero(part) for _, part in parts]
            if any(leaf.start is not None for leaf in self.leaves):
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
        """What each leaf is counted from."""
        return [
            np.asarray(0 if leaf.start is None else leaf.start).tolist() for leaf in self.leaves
        ]

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


class Observations(BatchLayout):
    """Batches of observations: made, filled, copied and taken apart."""

    def __init__(self, space: Space, num_envs: int, *, from_zero: bool = True) -> None:
        super().__init__(space, num_envs, "observation_space", from_zero=from_zero)

    def empty(self) -> list[Array]:
        """One uninitialised array of shape `(n, *leaf.shape)` for each leaf."""
        return [np.empty((self.num_envs, *leaf.shape), leaf.dtype) for leaf in self.leaves]

    def write(self, batch: list[Array], row: int, obs: Any) -> None:
        """Copy one single observation into its row, cast to the space's dtype."""
        if self.keys is None:
            self._write_leaf(self.leaves[0], batch[0], row, obs)
            return
        for leaf, array, value in zip(self.leaves, batch, self.unpack(obs), strict=True):
            self._write_leaf(leaf, array, row, value)

    def _write_leaf(self, leaf: Leaf, array: Array, row: int, value: Any) -> None:
        if not isinstance(value, np.ndarray | np.generic):
            value = to_numpy(value)
        if value.shape != leaf.shape:
            raise ConversionError(
                f"Expected {leaf.name.replace('_space', '')} of shape {leaf.shape}, as the space "
                f"says, but row {row} gave shape={value.shape}. Make the sub-environment return "
                "what its observation_space declares."
            )
        array[row] = value if leaf.start is None else value - leaf.start

    def single(self, obs: Any, *, copy: bool) -> Any:
        """One single observation as SB3 is to see it; with `copy`, it shares nothing with `obs`."""
        owned = copy_value(obs) if copy else obs
        if all(leaf.start is None for leaf in self.leaves):
            return owned
        return self.pack(
            [
                value if leaf.start is None else value - leaf.start
                for leaf, value in zip(self.leaves, self.unpack(owned), strict=True)
            ]
        )

    def check_shape(self, obs: Any, what: str) -> None:
        """Refuse a single observation of another shape than the space's.

        Raises:
            ConversionError: As where a wrapper transforms observations but not the last ones.
        """
        for leaf, value in zip(self.leaves, self.unpack(obs), strict=True):
            if np.shape(value) != leaf.shape:
                raise ConversionError(
                    f"Expected {what} to have shape {leaf.shape}, as {leaf.name} says, got "
                    f"shape={np.shape(value)}. A wrapper that transforms observations has to "
                    "transform infos['final_obs'] as well."
                )

    def batch(self, obs: Any, *, copy: bool) -> list[Array]:
        """The leaf arrays of a batch that a vector environment returned.

        Args:
            obs: Arrays (NumPy, torch or JAX) of shape `(n, *leaf.shape)`, in a dict or tuple where
                the space is one.
            copy: Whether the arrays returned must share nothing with `obs`.

        Raises:
            ConversionError: If a leaf is missing or has another shape.
        """
        arrays = []
        try:
            values = self.unpack(obs)
        except (KeyError, IndexError, TypeError) as error:
            raise ConversionError(
                f"Expected a batch of observations with the keys {self.keys}, got "
                f"observations={obs!r:.200} ({type(obs).__name__})."
            ) from error
        for leaf, value in zip(self.leaves, values, strict=True):
            array = to_numpy(value)
            expected = (self.num_envs, *leaf.shape)
            if array.shape != expected:
                raise ConversionError(
                    f"Expected a batch of {leaf.name.replace('_space', '')} of shape {expected} "
                    f"(num_envs, *single shape), got shape={array.shape}. "
                    "Every step and reset has to return all rows."
                )
            owned = array if array.dtype == leaf.dtype else array.astype(leaf.dtype)
            if leaf.start is not None:
                owned = owned - np.asarray(leaf.start, leaf.dtype)
            arrays.append(owned.copy() if copy and owned is array else owned)
        return arrays

    def picker(self, value: Any, name: str) -> Callable[[int], Any]:
        """How to get single observations out of what a SAME_STEP environment gives as final.

        Args:
            value: An object array of single observations (None where there is none), or a batch
                of all rows: an array, or a dict or tuple of arrays.
            name: The info key, for messages.

        Returns:
            A function of the row. What it returns may share memory with `value`.
        """
        if isinstance(value, list):
            value = np.array([*value, None], dtype=object)[:-1]  # the None keeps it from nesting
        listed = isinstance(value, np.ndarray) and value.dtype.hasobject
        parts = [value] if listed or self.keys is None else self.unpack(value)
        arrays = [to_numpy(part) for part in parts]
        for leaf, array in zip(self.leaves, arrays, strict=False):
            shape = (self.num_envs,) if array.dtype.hasobject else (self.num_envs, *leaf.shape)
            if array.shape != shape:
                raise ConversionError(
                    f"Expected infos[{name!r}] to hold one observation for each row, of shape "
                    f"{shape}, got shape={array.shape}."
                )
        if listed or self.keys is None:
            return lambda row: arrays[0][row]
        return lambda row: self.pack([array[row] for array in arrays])

    def rows(self, batch: list[Array], rows: Rows) -> list[Any]:
        """Copies of some rows: NumPy scalars where a leaf has no shape, as `DummyVecEnv` has.

        Arrays are parts of one new block, which is much faster than an allocation for each.
        """
        columns = [list(array[rows]) for array in batch]
        if self.keys is None:
            return columns[0]
        return [self.pack(parts) for parts in zip(*columns, strict=True)]

    @property
    def telling(self) -> bool:
        """Whether an observation hardly ever equals another one by chance."""
        return any(
            leaf.shape != () and (leaf.dtype.kind == "f" or np.prod(leaf.shape) >= 64)
            for leaf in self.leaves
        )

    def repeats(self, batch: list[Array], row: int, final: Any) -> bool:
        """Whether `final`, the last observation of an episode, is the one in `batch` once more."""
        return all(
            np.array_equal(value, array[row])
            for array, value in zip(batch, self.unpack(final), strict=True)
        )

    def to_numpy(self, obs: Any) -> Any:
        """One single observation, its torch and JAX leaves as NumPy arrays."""
        leaves = self.unpack(obs)
        if not any(map(is_foreign_array, leaves)):
            return obs
        return self.pack([to_numpy(x) if is_foreign_array(x) else x for x in leaves])


class Actions(BatchLayout):
    """Batches of actions: checked, cast and taken apart."""

    def __init__(self, space: Space, num_envs: int) -> None:
        super().__init__(space, num_envs, "action_space")

    def prepare(self, actions: Any) -> list[Array]:
        """Check and copy what the user passed, before anything is sent anywhere.

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
                f"Expected {self.num_envs} actions, one for each sub-environment, got "
                f"len(actions)={len(actions)}. Nothing was stepped."
            )
        if self.keys is None:
            values = [actions]
        elif per_row:
            rows = [self._parts(action, f"actions[{i}]") for i, action in enumerate(actions)]
            values = [list(column) for column in zip(*rows, strict=True)]
        else:
            values = self._parts(actions, "actions")
        return [self._leaf(leaf, value) for leaf, value in zip(self.leaves, values, strict=True)]

    def rows(self, batch: list[Array]) -> list[Any]:
        """The single actions: NumPy scalars or arrays, in a dict or tuple where the space is."""
        if self.keys is None:
            return list(batch[0])
        return [self.pack(leaves) for leaves in zip(*batch, strict=True)]

    def _parts(self, value: Any, name: str) -> list[Any]:
        assert self.keys is not None
        expected = dict if self.kind is spaces.Dict else tuple
        if not isinstance(value, expected) or len(value) != len(self.keys):
            raise ValueError(
                f"Expected {name} to be a {expected.__name__} with the keys {self.keys}, or a list "
                f"of {self.num_envs} such actions, got {value!r:.200} ({type(value).__name__}). "
                "Nothing was stepped."
            )
        missing = [key for key in self.keys if isinstance(value, dict) and key not in value]
        if missing:
            raise ValueError(f"Expected {name} to have the keys {self.keys}, missing: {missing}.")
        return self.unpack(value)

    def _leaf(self, leaf: Leaf, value: Any) -> Array:
        name = leaf.name.replace("action_space", "actions")
        try:
            array = np.asarray(to_numpy(value))
        except ValueError as error:  # ragged lists
            raise ValueError(f"Expected {name} of one shape in all rows: {error}") from error
        expected = (self.num_envs, *leaf.shape)
        if array.shape != expected:
            raise ValueError(
                f"Expected {name}.shape={expected} (one action for each of the {self.num_envs} "
                f"sub-environments), got {name}.shape={array.shape}. Nothing was stepped."
            )
        cast = cast_safely(array, leaf.dtype)
        if cast is None:
            raise ValueError(
                f"Expected {name} of a dtype that casts to {leaf.dtype} without loss, got "
                f"{name}.dtype={array.dtype}. Cast the actions yourself if the loss is meant. "
                "Nothing was stepped."
            )
        if leaf.start is not None:
            cast += np.asarray(leaf.start, leaf.dtype)
        return cast


def action_rows(space: Space, actions: Any, num_envs: int) -> list[Any]:
    """The single actions of a batch, as Gymnasium's `iterate` would hand them out: uncast.

    Args:
        space: The space of a single action.
        actions: A batch: anything of length n; a dict or tuple of such batches where the space is
            one. Or a list of n single actions.
        num_envs: The number of rows, n.

    Raises:
        ValueError: If their count does not fit, or a part is missing.
    """
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return list(_of_length(actions, num_envs))
    is_dict = isinstance(space, spaces.Dict)
    inner: Any = space.spaces
    parts: list[tuple[Any, Space]] = list(inner.items() if is_dict else enumerate(inner))
    kind = dict if is_dict else tuple
    listed = isinstance(actions, list | np.ndarray)
    if listed and all(isinstance(action, kind) for action in actions):
        return list(_of_length(actions, num_envs))
    if not (isinstance(actions, Mapping) if is_dict else isinstance(actions, tuple | list)) or (
        len(actions) != len(parts) or (is_dict and any(key not in actions for key, _ in parts))
    ):
        raise ValueError(
            f"Expected actions as a {kind.__name__} with the keys {[key for key, _ in parts]}, or "
            f"as a list of {num_envs} such actions, got {actions!r:.200} "
            f"({type(actions).__name__}). Nothing was stepped."
        )
    columns = [action_rows(part, actions[key], num_envs) for key, part in parts]
    if is_dict:
        keys = [key for key, _ in parts]
        return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]
    return list(zip(*columns, strict=True))


def action_batch(space: Space, actions: Any, num_envs: int) -> Any:
    """Actions as a `VecEnv` takes them: an array, or a list where the space is a Dict or Tuple.

    Args and errors as for `action_rows`.
    """
    if isinstance(space, spaces.Dict | spaces.Tuple):
        return action_rows(space, actions, num_envs)
    _of_length(actions, num_envs)
    if isinstance(actions, np.ndarray):
        return actions
    try:
        return np.asarray(to_numpy(actions))
    except ValueError as error:  # ragged
        raise ValueError(f"Expected actions of one shape in all rows: {error}") from error


def _of_length(actions: Any, num_envs: int) -> Any:
    try:
        count = len(actions)
    except TypeError:
        count = None
    if count != num_envs:
        raise ValueError(
            f"Expected {num_envs} actions, one for each sub-environment, got "
            f"{f'len(actions)={count}' if count is not None else f'actions={actions!r:.200}'} "
            f"({type(actions).__name__}). Nothing was stepped."
        )
    return actions


def cast_safely(array: Array, dtype: np.dtype[Any]) -> Array | None:
    """A new array of `dtype`, or None where the cast would change what the values mean.

    Safe is a float of another precision (NumPy's `same_kind`) and anything whose values come
    through unchanged: SB3 itself sends float32 actions for MultiBinary. An integer that does not
    fit is not safe, although `same_kind` lets it wrap around.
    """
    if np.can_cast(array.dtype, dtype, "safe") or (
        dtype.kind in "fc" and np.can_cast(array.dtype, dtype, "same_kind")
    ):
        return array.astype(dtype)
    if array.dtype.kind not in "biuf":
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        cast = array.astype(dtype)
        same = np.array_equal(cast.astype(array.dtype), array) and bool(
            np.all((cast >= 0) == (array >= 0))
        )
    return cast if same else None


def _leaf(space: Space, name: str, whole: Space) -> Leaf:
    if not isinstance(space, _LEAVES):
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
            f"Stable-Baselines3 cannot batch it. {way_out}"
        )
    shape, dtype = space.shape, space.dtype
    assert shape is not None
    assert dtype is not None
    start = space.start if isinstance(space, spaces.Discrete | spaces.MultiDiscrete) else None
    return Leaf(name, shape, np.dtype(dtype), start if np.any(start) else None)


def _from_zero(space: Space) -> Space:
    """`space`, counted from 0; the same object where it is already."""
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete) and np.any(space.start):
        shown: Any = deepcopy(space)
        shown.start = shown.start * 0
        return shown  # type: ignore[no-any-return]
    return space
