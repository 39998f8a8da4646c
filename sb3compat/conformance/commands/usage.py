"""Exit codes, and complaints about wrong use."""

from __future__ import annotations

import sys
from pathlib import Path

CLEAN, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130


class UsageError(Exception):
    """The arguments make no sense; the message says which would."""


def complain(message: str) -> int:
    """Print a complaint, and return the exit code for wrong use."""
    print(f"sb3compat: {message}", file=sys.stderr)
    return WRONG_USE


def write(path: Path, text: str) -> None:
    """Write a file, whatever characters there are in the text.

    Raises:
        UsageError: If it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UsageError(
            f"Expected a file that can be written, got {str(path)!r}: {error.strerror}. Change its "
            "permissions, or name another one."
        ) from error
