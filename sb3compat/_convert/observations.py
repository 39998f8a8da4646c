"""Observations, batched and single, by space. Pure functions and small value objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from sb3compat._convert.arrays import cast_safely, copy_value, is_foreign_array, to_numpy
from sb3compat._convert.spaces import BatchLayout, Leaf
from sb3compat._convert.types import Array, Observation, Rows, Space
from sb3compat.errors import ConversionError, shown


class Observations(BatchLayout):
    """Makes, fills, copies and splits batches of observations.

    Args:
        space: The space of one observation.
        num_envs: The number of rows.
        from_zero: Whether spaces with another start are shifted to 0.
        keep_dtypes: Whether batches stay in the dtypes in which they are given.

    Attributes:
        first: The number of row 0, where these rows are a part of more; for messages.
    """

    first = 0

    def __init__(
        self,
        space: Space,
        num_envs: int,
        *,
        from_zero: bool = True,
        keep_dtypes: bool = False,
    ) -> None:
        super().__init__(space, num_envs, "observation_space", from_zero=from_zero)
        self._keep_dtypes = keep_dtypes

    @cached_property
    def only_shape(self) -> tuple[int, ...] | None:
        """The shape of an observation that is one array and not shifted; else None."""
        return self.leaves[0].shape if self.keys is None and self.starts == [0] else None

    def empty(self) -> list[Array]:
        """One uninitialised array of shape `(n, *leaf.shape)` for each leaf."""
        return [np.empty((self.num_envs, *leaf.shape), leaf.dtype) for leaf in self.leaves]

    def write(self, batch: list[Array], row: int, obs: Observation) -> None:
        """Copy one single observation into its row, cast to the space's dtype."""
        if self.keys is None:
            self._write_leaf(self.leaves[0], batch[0], row, obs)
            return
        for leaf, array, value in zip(self.leaves, batch, self.unpack(obs), strict=True):
            self._write_leaf(leaf, array, row, value)

    def _write_leaf(self, leaf: Leaf, array: Array, row: int, value: Any) -> None:
        own = value if isinstance(value, np.ndarray | np.generic) else to_numpy(value)
        if own.shape != leaf.shape:
            raise ConversionError(
                f"Expected {leaf.name.replace('_space', '')} of shape {leaf.shape}, as the space "
                f"says, but row {self.first + row} gave shape={own.shape}. Make the "
                "sub-environment return what its observation_space declares."
            )
        # NumPy refuses a Python number that the dtype cannot hold, and wraps one in an array.
        array[row] = own if is_foreign_array(value) else value
        if leaf.start is not None:
            array[row] -= leaf.start

    def single(self, obs: Observation, *, copy: bool) -> Observation:
        """One single observation as SB3 is to see it; with `copy`, it shares nothing with `obs`."""
        owned = copy_value(obs) if copy else obs
        if self.counts_from_zero:
            return owned
        return self.pack(
            [
                value if leaf.start is None else value - leaf.start
                for leaf, value in zip(self.leaves, self.unpack(owned), strict=True)
            ]
        )

    def check_shape(self, obs: Observation, what: str, key: str = "final_obs") -> None:
        """Refuse a last observation of another form than the space's.

        Args:
            obs: The observation.
            what: What it is, for messages.
            key: The info key that it was under.

        Raises:
            ConversionError: If a part is missing or has another shape, for example because a
                wrapper transforms observations and not those in the infos.
        """
        advice = (
            f" A wrapper that transforms observations has to transform {key!r} in the infos as "
            "well."
        )
        shapes = self._parts(obs, np.shape, what, advice)
        for leaf, shape in zip(self.leaves, shapes, strict=True):
            if shape != leaf.shape:
                raise ConversionError(
                    f"Expected {what} to have shape {leaf.shape}, as {leaf.name} says, got "
                    f"shape={shape}.{advice}"
                )

    def _parts(
        self, value: Any, convert: Callable[[Any], Any], what: str, advice: str
    ) -> list[Any]:
        """Each leaf of a value that the user's code has returned, converted."""
        try:
            return list(map(convert, self.unpack(value)))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            keys = "" if self.keys is None else f" with the keys {self.keys}"
            raise ConversionError(
                f"Expected {what}{keys}, got {shown(value)} ({type(value).__name__}).{advice}"
            ) from error

    def batch(
        self, obs: Observation, *, copy: bool, source: object = "", advice: str = ""
    ) -> list[Array]:
        """The leaf arrays of a batch of observations of all rows, in the dtypes of the space.

        With `keep_dtypes`, they have the dtypes of `obs`.

        Args:
            obs: Arrays (NumPy, torch or JAX) of shape `(n, *leaf.shape)`, in a dict or tuple where
                the space is one.
            copy: Whether the arrays returned must share nothing with `obs`.
            source: What has returned them, for messages.
            advice: What to do about observations of another form, for messages.

        Raises:
            ConversionError: If a leaf is missing, has another shape, or has values that the dtype
                of the space cannot hold. They are never cut.
        """
        values = self._parts(obs, to_numpy, "a batch of observations", advice)
        arrays = []
        for leaf, array in zip(self.leaves, values, strict=True):
            expected = (self.num_envs, *leaf.shape)
            if array.shape != expected:
                raise ConversionError(
                    f"Expected a batch of {leaf.name.replace('_space', '')} of shape {expected} "
                    f"(num_envs, *single shape), got shape={array.shape} ({type(obs).__name__}). "
                    f"Every step and reset has to return all rows.{advice}"
                )
            kept = self._keep_dtypes or array.dtype == leaf.dtype
            owned = array if kept else _cast(array, leaf, source)
            if leaf.start is not None:
                owned = (owned - leaf.start).astype(owned.dtype)
            arrays.append(owned.copy() if copy and owned is array else owned)
        return arrays

    def cast(self, obs: Observation, source: object) -> list[Array]:
        """The leaf arrays of one single observation, in the dtypes of the space.

        Raises:
            ConversionError: If a dtype cannot hold the values.
        """
        pairs = zip(self.leaves, map(np.asarray, self.unpack(obs)), strict=True)
        return [_cast(array, leaf, source) for leaf, array in pairs]

    def picker(self, value: object, name: str) -> Callable[[int], Observation]:
        """Make a function that picks single observations out of `final_obs`.

        Args:
            value: An object array of single observations (None where there is none), or a batch
                of all rows: an array, or a dict or tuple of arrays.
            name: The info key, for messages.

        Returns:
            A function of the row. Its results may share memory with `value`. Those of a batch have
            the dtypes of the space, as in `batch`.
        """
        if isinstance(value, list):
            value = np.array([*value, None], dtype=object)[:-1]  # the None keeps it from nesting
        listed = isinstance(value, np.ndarray) and value.dtype.hasobject
        advice = " Return one observation of the space for each row, None where there is none."
        arrays: list[Array] = (
            [np.asarray(value)]
            if listed
            else self._parts(value, to_numpy, f"infos[{name!r}] as a batch", advice)
        )
        for leaf, array in zip(self.leaves, arrays, strict=False):
            shape = (self.num_envs,) if array.dtype.hasobject else (self.num_envs, *leaf.shape)
            if array.shape != shape:
                raise ConversionError(
                    f"Expected infos[{name!r}] to hold one observation for each row, of shape "
                    f"{shape}, got shape={array.shape}.{advice}"
                )
        if listed:
            return lambda row: arrays[0][row]

        def part(leaf: Leaf, array: Array, row: int) -> Any:
            if self._keep_dtypes or array.dtype == leaf.dtype or array.dtype.hasobject:
                return array[row]
            # Of this row alone, as the others hold anything.
            return _cast(array[row : row + 1], leaf, f"infos[{name!r}]")[0]

        return lambda row: self.pack(
            [part(*pair, row) for pair in zip(self.leaves, arrays, strict=True)]
        )

    def rows(self, batch: list[Array], rows: Rows) -> list[Observation]:
        """Copies of some rows: NumPy scalars where a leaf has no shape, as `DummyVecEnv` has.

        Arrays are parts of one new block, which is much faster than an allocation for each.
        """
        columns = [list(array[rows]) for array in batch]
        if self.keys is None:
            return columns[0]
        if not columns:
            return [self.pack([]) for _ in rows]
        return [self.pack(parts) for parts in zip(*columns, strict=True)]

    @cached_property
    def repeats_by_chance(self) -> bool:
        """Whether an observation may well equal another one: it has a few small integers."""
        return not any(
            leaf.shape != ()
            and 0 not in leaf.shape
            and (leaf.dtype.kind == "f" or np.prod(leaf.shape) >= 64)
            for leaf in self.leaves
        )

    def repeats(self, batch: list[Array], row: int, final: Observation) -> bool:
        """Whether `final`, the last observation of an episode, equals the row's one in `batch`."""
        return any(array.size for array in batch) and all(
            np.array_equal(value, array[row])
            for array, value in zip(batch, self.unpack(final), strict=True)
        )

    def to_numpy(self, obs: Observation) -> Observation:
        """One single observation, its torch and JAX leaves as NumPy arrays."""
        leaves = self.unpack(obs)
        if not any(map(is_foreign_array, leaves)):
            return obs
        return self.pack([to_numpy(x) if is_foreign_array(x) else x for x in leaves])


def _cast(array: Array, leaf: Leaf, source: object) -> Array:
    cast = cast_safely(array, leaf.dtype)
    if cast is None:
        raise ConversionError(
            f"Expected observations of dtype {leaf.dtype}, as {leaf.name} says, got "
            f"dtype={array.dtype} from {source}, with values that {leaf.dtype} cannot hold. Give "
            "the wrapper that changes the observations an observation space of its own, of their "
            "dtype; or have it return what its space says."
        )
    return cast
