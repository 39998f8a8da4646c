"""A part of a worker: it steps and resets some of its rows, into the shared arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sb3compat._convert.infos import TERMINAL_OBSERVATION
from sb3compat._convert.observations import Observations
from sb3compat._convert.types import Array, Info, Observation, Options, Seeds, SubEnvs, Value
from sb3compat._parallel.extras import OwnArray, share
from sb3compat._parallel.memory import Buffers
from sb3compat._rows.source import Source
from sb3compat._rows.subenvs import LocalSubEnvs
from sb3compat._to_sb3.rows_sync import EnvRows


class PartStep(NamedTuple):
    """What a part says of a step besides the arrays.

    Attributes:
        infos: The info of each row.
        reset_infos: The infos of resets within the step, by the row's number in the arrays.
        arrays: What does not fit into the arrays.
    """

    infos: Sequence[Info]
    reset_infos: dict[int, Info]
    arrays: list[OwnArray]


class Part:
    """A vector environment or a `VecEnv`, driven as a whole; its rows are of one function.

    Args:
        source: Steps and resets the rows.
        subenvs: Reaches their sub-environments.
        count: The number of rows.
        name: What it is, for messages.

    Attributes:
        rows: The rows, as numbers among those of all workers, once `attach` was called.
    """

    # Whether each row is a single environment, which takes commands and fails by itself.
    single = False

    def __init__(self, source: Source, subenvs: SubEnvs, count: int, name: str) -> None:
        self.source, self.subenvs, self.name = source, subenvs, name
        self.rows = slice(0, count)

    @property
    def where(self) -> str:
        """Its rows, for messages."""
        first, last = self.rows.start, self.rows.stop - 1
        return f"row {first}" if first == last else f"rows {first} to {last}"

    @property
    def failed(self) -> int | None:
        """The row that was being stepped or reset when an exception was raised, where known."""
        return None

    def attach(self, out: Buffers, first: int) -> int:
        """Write into these arrays from row `first` on; returns the row behind the last one."""
        self.rows = slice(first, first + self.rows.stop - self.rows.start)
        self.out = out
        return self.rows.stop

    def reset(
        self, seeds: Seeds, options: Sequence[Options] | None
    ) -> tuple[list[Info], list[OwnArray]]:
        """Reset all rows; options are None if none were set since the last time."""
        if options is not None:
            self.source.check_options(options)
        batch, infos = self.source.reset(seeds, options or [{}] * len(seeds))
        return infos, share(self.out.observations, self.rows, batch, self.name)

    def send(self, actions: Sequence[Array]) -> None:
        """Start a step with the share of this part in the actions of all rows."""
        self.source.send([array[self.rows] for array in actions])

    def receive(self) -> PartStep:
        """Finish the step."""
        rows, out = self.rows, self.out
        step = self.source.receive()
        arrays = [*out.observations, out.rewards]
        own = share(arrays, rows, [*step.observations, step.rewards], self.name)
        out.ended[rows], out.truncated[rows] = step.ended, step.truncated
        resets = {rows.start + i: info for i, info in step.reset_infos.items()}
        return PartStep(step.infos, resets, own)


class SingleEnvs(Part):
    """Neighbouring single environments, stepped in one loop that writes into the arrays."""

    single = True
    source: EnvRows

    def __init__(self, source: EnvRows, subenvs: LocalSubEnvs) -> None:
        super().__init__(source, subenvs, len(subenvs.envs), "single environments")

    @property
    def failed(self) -> int:
        """The row that was being stepped or reset when an exception was raised."""
        return self.source.failed

    def attach(self, out: Buffers, first: int) -> int:
        """As above; the source writes into the arrays itself."""
        self.source.first, self.source.batch = first, out.observations
        return super().attach(out, first)

    def reset(
        self, seeds: Seeds, options: Sequence[Options] | None
    ) -> tuple[list[Info], list[OwnArray]]:
        """Reset all rows."""
        return self.source.reset(seeds, options or [{}] * len(seeds))[1], []

    def receive(self) -> PartStep:
        """Finish the step."""
        out = self.out
        out.ended[self.rows] = False
        out.truncated[self.rows] = False
        step = self.source.step_into(out.observations, out.rewards, out.ended, out.truncated)
        return PartStep(*step, [])


def save_final(finals: Sequence[Array], row: int, info: Info, layout: Observations) -> None:
    """Move the last observation of an episode into the arrays, if it comes out of them as it is.

    Args:
        finals: The arrays of last observations.
        row: The row.
        info: The info of the step; the observation is removed from it.
        layout: The layout of observations.
    """
    leaves = _leaves(info[TERMINAL_OBSERVATION], layout)
    if leaves is not None:
        for array, value in zip(finals, leaves, strict=True):
            array[row] = value
        del info[TERMINAL_OBSERVATION]


def _leaves(final: Observation, layout: Observations) -> list[Value] | None:
    keys = layout.keys
    if keys is None:
        leaves = [final]
    elif type(final) is dict and list(final) == keys:
        leaves = list(final.values())
    elif type(final) is tuple and len(final) == len(keys):
        leaves = list(final)
    else:
        return None
    for leaf, value in zip(layout.leaves, leaves, strict=True):
        kind = np.ndarray if leaf.shape else leaf.dtype.type
        if type(value) is not kind or value.dtype != leaf.dtype or value.shape != leaf.shape:
            return None
    return leaves
