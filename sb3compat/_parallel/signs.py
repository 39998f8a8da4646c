"""Signs of life while environments are made: records of the log, and a line in a terminal."""

from __future__ import annotations

import inspect
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TextIO

# Nothing is shown before this many seconds.
QUIET_SECONDS = 3.0
# How often a record is logged, and how often the line is updated.
LOG_SECONDS = 10.0
TURN_SECONDS = 0.5
# How much is shown of an object that is called as a function.
MOST_CHARACTERS = 100

_log = logging.getLogger("sb3compat")


class Signs:
    """Shows the progress of an operation, if it takes more than a few seconds.

    The log has records of the level INFO. If the standard error is a terminal, it shows a line as
    well, which is updated, and removed at the end. There is no thread: the code that waits calls
    `tell` from time to time.

    Args:
        stream: The terminal; the standard error by default.
        clock: The time in seconds.
    """

    def __init__(
        self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._now, self._begin = clock, clock()
        self._next_record = self._next_line = self._begin + QUIET_SECONDS
        self._shown = False

    @property
    def passed(self) -> float:
        """How many seconds it has taken so far."""
        return self._now() - self._begin

    def tell(self, make_text: Callable[[], str]) -> None:
        """Show the progress, if it is time to do so; the text is made only where it is shown."""
        now = self._now()
        if now < self._next_line:
            return
        self._next_line = now + TURN_SECONDS
        if now >= self._next_record:
            self._next_record = now + LOG_SECONDS
            _log.info("%s", make_text())
        if self._is_terminal():
            text = f"sb3compat: {' '.join(make_text().split())}"
            self._write(f"\r{text[: shutil.get_terminal_size().columns - 1]}\x1b[K")
            self._shown = True

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            self._shown = False
            self._write("\r\x1b[K")

    def _is_terminal(self) -> bool:
        with suppress(AttributeError, ValueError):  # there is no such stream, or it was closed
            return self._stream.isatty() and os.environ.get("TERM") != "dumb"
        return False

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


def name_of(function: Any) -> str:
    """What a function is called and where it is written, for messages."""
    while isinstance(function, partial):
        function = function.func
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return str(function.__qualname__ if isinstance(function, type) else function)[
            :MOST_CHARACTERS
        ]
    name = getattr(function, "__qualname__", code.co_name).rpartition("<locals>.")[2]
    return f"{name}, {Path(code.co_filename).name}:{code.co_firstlineno}"
