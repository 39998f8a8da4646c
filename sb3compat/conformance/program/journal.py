"""The program at work, written down for the case that the process hangs or dies."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path


class Journal:
    """The statements of the program at work, in a file.

    Args:
        path: The file; empty for none.
    """

    def __init__(self, path: str) -> None:
        # Without a buffer: a killed process would not flush it.
        self._file = open(path, "wb", buffering=0) if path else None  # noqa: SIM115

    def begin(self) -> Callable[[str], None]:
        """Begin a new program; the function returned writes a statement down."""
        file = self._file
        if file is None:
            return lambda text: None
        file.seek(0)
        file.truncate()

        def write(text: str) -> None:
            file.write(f"{text!r}\n".encode())

        return write

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def read_journal(path: Path) -> list[str]:
    """The statements of the last program; the last one hung or killed the process."""
    return [ast.literal_eval(line) for line in path.read_text("utf-8").splitlines() if line]
