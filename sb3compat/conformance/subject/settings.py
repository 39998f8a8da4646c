"""How one check is run."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sb3compat.conformance.program.source import PLACEHOLDER
from sb3compat.conformance.subject.pace import MOST_PROGRAMS


@dataclass(frozen=True)
class Settings:
    """How one check is run.

    Attributes:
        seed: The seed of the programs.
        programs: The number of programs for one check, without those that shrink a failure.
        seconds: The time for one check, where the user limits that of the run; the same again is
            for shrinking a failure.
        make_env: Source that defines `make_env` in reproductions.
        journal: A file for the statements of the running program, which another process reads if
            this one hangs or dies; empty for none.
    """

    seed: int = 0
    programs: int = MOST_PROGRAMS
    seconds: float = math.inf
    make_env: str = PLACEHOLDER
    journal: str = ""
