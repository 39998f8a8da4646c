"""What a process was about to do, written down for the case that it hangs or dies of it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path


class Journal:
    """The statements of the program at work, in a file.

    Args:
        path: The file; none is written where it is empty.
    """

    def __init__(self, path: str) -> None:
        # Without a buffer, as a process that is killed writes none out.
        self._file = open(path, "wb", buffering=0) if path else None  # noqa: SIM115

    def begin(self) -> Callable[[str], None]:
        """Begin with a new program; what is returned writes a statement down."""
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
    """The statements that were written down; the last one is that which was not survived."""
    return [ast.literal_eval(line) for line in path.read_text("utf-8").splitlines() if line]
