"""The progress of a run, in one line of a terminal that is updated."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from sb3compat.conformance.contract import Check
from sb3compat.conformance.run.report import Result

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from sb3compat.conformance.run.session import Session

_BAR_WIDTH = 20


class Progress:
    """Shows the progress; only on a terminal, and only if rich is installed.

    Args:
        stream: Where to show it.
        quiet: Whether to show nothing.
        clock: Tells the time in seconds.
    """

    def __init__(
        self, stream: TextIO, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._live: Live | None = None
        self._failed = 0
        self._now, self._begin = clock, clock()
        self._text = ""
        self._done, self._count = 0, 0
        # When the first check began, and the estimated time of all checks.
        self._checks_begin, self._estimate = 0.0, 0.0
        if stream.isatty() and os.environ.get("TERM") != "dumb" and not quiet:
            with suppress(ModuleNotFoundError):
                self._live = _live(stream)

    def say(self, text: str) -> None:
        """Show this text instead of what is there; without one, how much time has passed."""
        self._text = " ".join(text.split()) or self._text
        if self._live is not None:
            self._live.start()
            self._live.update(self._line(), refresh=True)

    def began(self, session: Session) -> None:
        """Note when the checks begin, and what they will take; `run.entry.run` calls it."""
        self._checks_begin, self._estimate = self._now(), session.estimate

    def __call__(self, check: Check, result: Result | None, number: int, count: int) -> None:
        """Show a check that begins, and count one that has failed; `run.entry.run` calls it."""
        if result is not None:
            self._failed += result.status in ("failed", "errored")
            self._done = number
        else:
            self._count = count
            failed = f", {self._failed} failed" if self._failed else ""
            self._text = f"{number}/{count}{failed}  {check.id}"
            self.say("")

    def close(self) -> None:
        """Remove the line."""
        if self._live is not None:
            self._live.stop()

    def left(self) -> float:
        """About how many seconds the other checks will take."""
        passed, part = self._now() - self._checks_begin, self._done / self._count
        # The more checks have run, the more weight their measured time gets.
        known = passed / part if part else 0.0
        return max((1 - part) * ((1 - part) * self._estimate + part * known), 0.0)

    def _line(self) -> RenderableType:
        passed = f"{self._now() - self._begin:.0f} s"
        if not self._count:
            from rich.text import Text

            return Text(f"{passed}  {self._text} …", no_wrap=True, overflow="ellipsis")
        left = f"{self.left():.0f}"
        return _line(f"{self._text}  {passed}, {left} s left", self._done, self._count)


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
