"""How a process ended, in words."""

from __future__ import annotations

import signal


def cause_of_death(code: int) -> str:
    """The name of the signal that ended a process, or its exit code."""
    try:
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"
    except ValueError:
        return f"signal {-code}"
