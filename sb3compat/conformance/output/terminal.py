"""The report for a terminal, and the progress while it comes about."""

from __future__ import annotations

import os
import re
import shutil
from textwrap import indent
from typing import TextIO

from sb3compat.conformance.contract import Check
from sb3compat.conformance.output import by_group, headline, told, trace_title, versions
from sb3compat.conformance.run.report import Report, Result

_COLOURS = {
    "failed": "31;1",
    "errored": "31;1",
    "warning": "33",
    "xpassed": "33",
    "xfailed": "36",
    "passed": "32",
    "not exercised": "35",
    "skipped": "2",
}
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_CLEAR = "\r\x1b[2K"
_SHOWN_NAMES = 60


def may_colour(stream: TextIO) -> bool:
    """Whether a stream shows colours, and its user wants them (https://no-color.org)."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and stream.isatty()


class Progress:
    """Shows which check is running, in one line that is written over; on a terminal only."""

    def __init__(self, stream: TextIO, *, quiet: bool = False) -> None:
        self._stream = stream
        self._shows = not quiet and stream.isatty() and os.environ.get("TERM") != "dumb"
        self._failed = 0

    def say(self, text: str) -> None:
        """Show this instead of what is there."""
        if self._shows:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(_CLEAR + text[:width])
            self._stream.flush()

    def __call__(self, check: Check, result: Result | None, number: int, count: int) -> None:
        """Told by `api.run` when a check begins and when it ends."""
        if result is not None:
            self._failed += result.status in ("failed", "errored")
            return
        failed = f", {self._failed} failed" if self._failed else ""
        self.say(f"[{number}/{count}{failed}] {check.id[:_SHOWN_NAMES]}")

    def clear(self) -> None:
        """Take the line away."""
        self.say("")


def render(report: Report, *, colour: bool = False) -> str:
    """The report as lines.

    Args:
        report: The report.
        colour: Whether to write colours.
    """

    def paint(text: str, label: str) -> str:
        return f"\x1b[{_COLOURS[label]}m{text}\x1b[0m" if colour else text

    def bold(text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if colour else text

    lines = [bold(_safe(report.target)), headline(report), versions(report)]
    lines += [f"Note: {_safe(note)}" for note in report.notes]
    for group, results in by_group(report).items():
        lines += ["", bold(group)]
        for result in results:
            label = report.label(result)
            why = _why(result)
            lines.append(f"  {paint(f'{label:<14}', label)}{result.check_id}{why}")
    for result in told(report):
        label = report.label(result)
        lines += ["", paint(_rule(f"{label}: {result.check_id}"), label), *_particulars(result)]
    label = "passed" if report.ok else "failed"
    return "\n".join([*lines, "", paint(report.summary(), label), ""])


def _why(result: Result) -> str:
    """Why there is no verdict, or why that is as expected."""
    if result.status == "xfailed":
        return f"  ({_cut(result.message[result.message.rindex('expected: ') :], 100)})"
    if result.status in ("skipped", "not_exercised"):
        return f"  ({_cut(result.message, 100)})"
    return ""


def _particulars(result: Result) -> list[str]:
    lines = [_safe(result.message), ""]
    lines += [f"Contract: {result.contract}", f"Source:   {result.source}"]
    if result.trace:
        lines += ["", f"{trace_title(result)}:", "", _block(result.trace)]
    if result.reproduction:
        lines += ["", "To reproduce it:", "", _block(result.reproduction)]
    lines += ["", f"More on this check: sb3compat explain {result.check_id}"]
    return lines


def _rule(text: str) -> str:
    return f"--- {text} ".ljust(80, "-")


def _block(text: str) -> str:
    return indent(_safe(text).rstrip(), "    ")


def _safe(text: str) -> str:
    """What an environment said may hold what moves the cursor: write that as Python would."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def _cut(text: str, limit: int) -> str:
    text = " ".join(_safe(text).split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
