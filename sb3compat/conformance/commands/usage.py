"""Exit codes, and complaints about wrong use."""

from __future__ import annotations

import sys

CLEAN, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130


class UsageError(Exception):
    """The arguments make no sense; the message says which would."""


def complain(message: str) -> int:
    """Print a complaint, and return the exit code for wrong use."""
    print(f"sb3compat: {message}", file=sys.stderr)
    return WRONG_USE
