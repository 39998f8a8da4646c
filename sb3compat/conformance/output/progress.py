"""The progress of a run, in one line of a terminal that is written over."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from sb3compat.conformance.contract import Check
from sb3compat.conformance.run.report import Result

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

_BAR_WIDTH = 20


class Progress:
    """Shows which check is running; on a terminal only, and only where rich is installed."""

    def __init__(self, stream: TextIO, *, quiet: bool = False) -> None:
        self._live: Live | None = None
        self._failed = 0
        if stream.isatty() and os.environ.get("TERM") != "dumb" and not quiet:
            with suppress(ModuleNotFoundError):
                self._live = _live(stream)

    def say(self, text: str) -> None:
        """Show this text instead of what is there."""
        if self._live is not None:
            from rich.text import Text

            self._show(Text(" ".join(text.split()), no_wrap=True, overflow="ellipsis"))

    def __call__(self, check: Check, result: Result | None, number: int, count: int) -> None:
        """Show a check that begins, and count one that has failed; `run.entry.run` calls it."""
        if result is not None:
            self._failed += result.status in ("failed", "errored")
        elif self._live is not None:
            failed = f", {self._failed} failed" if self._failed else ""
            self._show(_line(f"{number}/{count}{failed}  {check.id}", number - 1, count))

    def clear(self) -> None:
        """Take the line away."""
        if self._live is not None:
            self._live.stop()

    def _show(self, line: RenderableType) -> None:
        if self._live is not None:
            self._live.start()
            self._live.update(line, refresh=True)


def _live(stream: TextIO) -> Live:
    from rich.console import Console
    from rich.live import Live

    console = Console(
        file=stream,
        force_terminal=True,
        force_interactive=True,
        force_jupyter=False,
        markup=False,
        emoji=False,
        highlight=False,
    )
    # It must not refresh by itself: that takes a thread, and a process with threads must not fork.
    return Live(
        console=console,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def _line(text: str, done: int, count: int) -> RenderableType:
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    line = Table.grid(padding=(0, 1))
    line.add_column(width=_BAR_WIDTH)
    line.add_column(no_wrap=True, overflow="ellipsis")
    line.add_row(ProgressBar(count, done, width=_BAR_WIDTH), Text(text))
    return line
