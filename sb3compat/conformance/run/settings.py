"""How one check is run."""

from __future__ import annotations

from dataclasses import dataclass

from sb3compat.conformance.program.source import PLACEHOLDER


@dataclass(frozen=True)
class Settings:
    """How one check is run.

    Attributes:
        seed: The seed of the programs.
        seconds: The time for one check, without that for shrinking a failure.
        make_env: Source that defines `make_env` in reproductions.
        journal: A file for the statements of the running program, which another process reads if
            this one hangs or dies; empty for none.
    """

    seed: int = 0
    seconds: float = 1.0
    make_env: str = PLACEHOLDER
    journal: str = ""
