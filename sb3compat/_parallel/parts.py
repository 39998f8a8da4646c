"""A part of a worker: what one function has made, or several that make single environments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sb3compat._convert.types import Info, Options, Seeds, SubEnvs
from sb3compat._parallel.extras import OwnArray, share
from sb3compat._parallel.memory import Buffers
from sb3compat._rows.source import Source
from sb3compat._to_sb3.rows_sync import EnvRows


@dataclass
class Part:
    """Some rows of a worker, stepped and reset together.

    Attributes:
        source: Steps and resets the rows.
        subenvs: Reaches their sub-environments.
        rows: The rows, as numbers among those of all workers.
        name: What it is, for messages.
        single: Whether the rows are single environments, each of which takes commands by itself.
    """

    source: Source
    subenvs: SubEnvs
    rows: slice
    name: str
    single: bool = False

    @property
    def where(self) -> str:
        """Its rows, for messages."""
        first, last = self.rows.start, self.rows.stop - 1
        return f"row {first}" if first == last else f"rows {first} to {last}"

    @property
    def failed(self) -> int | None:
        """The row in which the last exception was raised, where that is known."""
        failed: int | None = getattr(self.source, "failed", None)
        return None if failed is None else int(self.rows.start) + failed

    def number_from(self, first: int) -> int:
        """Number the rows from `first` on; returns the number behind the last one."""
        self.rows = slice(first, first + self.rows.stop - self.rows.start)
        if isinstance(self.source, EnvRows):
            self.source.first = first
        return int(self.rows.stop)

    def reset(
        self, out: Buffers, seeds: Seeds, options: Sequence[Options] | None
    ) -> tuple[list[Info], list[OwnArray]]:
        """Reset all rows.

        Args:
            out: The observations are written into these arrays, of the rows of all workers.
            seeds: The seed of each row.
            options: The options of each row; None if none were set since the last time.

        Returns:
            The infos, and the observations that do not fit into the arrays.
        """
        if options is not None:
            self.source.check_options(options)
        batch, infos = self.source.reset(seeds, options or [{}] * len(seeds))
        return infos, share(out.observations, self.rows, batch, self.name)

    def receive(self, out: Buffers) -> tuple[list[Info], dict[int, Info], list[OwnArray]]:
        """Finish the step.

        Args:
            out: What is of fixed size is written into these arrays.

        Returns:
            The infos of the rows, those of resets by row, and what does not fit into the arrays.
        """
        rows, step = self.rows, self.source.receive()
        arrays = [*out.observations, out.rewards]
        own = share(arrays, rows, [*step.observations, step.rewards], self.name)
        out.ended[rows], out.truncated[rows] = step.ended, step.truncated
        return step.infos, {rows.start + i: info for i, info in step.reset_infos.items()}, own
