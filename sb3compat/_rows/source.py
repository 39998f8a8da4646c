"""The protocol `Source`, which drives the rows of a `VecEnv` of this package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from sb3compat._convert.types import Array, Info, Options, Seeds, Transition


class Source(Protocol):
    """Steps and resets the rows, in this process or in workers, for the adapter to SB3."""

    @property
    def busy(self) -> bool:
        """Whether workers are in the middle of a step, and cannot run other commands.

        After an exception in `send`, False says that no row was or will be stepped, unless the
        source is broken.
        """

    @property
    def broken(self) -> bool:
        """Whether a worker is lost, so that a reset would not help."""

    @property
    def seeds_rows(self) -> bool:
        """Whether a reset gives each row a seed of its own; else the first one is for all rows."""

    def check_options(self, options: Sequence[Options]) -> None:
        """Refuse options that the next reset could not apply."""

    def reset(self, seeds: Seeds, options: Sequence[Options]) -> tuple[list[Array], list[Info]]:
        """Reset all rows."""

    def send(self, actions: list[Array]) -> None:
        """Start a step."""

    def receive(self) -> Transition:
        """Finish the step."""

    def cancel(self) -> None:
        """Drop a step that was started."""

    def render(self) -> Any:
        """One frame for each row, or None."""

    def close(self) -> None:
        """Close the environment."""
