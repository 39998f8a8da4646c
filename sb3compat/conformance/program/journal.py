"""The program at work, written down for the case that the process hangs or dies."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def journal(path: str) -> Iterator[Callable[[str], None]]:
    """Begin a program; gives the function that writes a statement down.

    Args:
        path: The file; empty for none.
    """
    if not path:
        yield lambda text: None
        return
    # Without a buffer: a killed process would not flush it.
    with open(path, "wb", buffering=0) as file:

        def write(text: str) -> None:
            file.write(f"{text!r}\n".encode())

        yield write


def read_journal(path: Path) -> list[str]:
    """The statements of the last program; the last one hung or killed the process."""
    return [ast.literal_eval(line) for line in path.read_text("utf-8").splitlines() if line]
