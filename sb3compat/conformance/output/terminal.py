"""The report for a terminal, laid out by rich.

All text from an environment is put into a `Text`, in which rich does not interpret markup or emoji
codes.
"""

from __future__ import annotations

import io
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from textwrap import indent
from typing import TextIO

from rich.console import Console, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from sb3compat.conformance.findings import cut
from sb3compat.conformance.output import (
    by_group,
    headline,
    reason,
    reasons,
    safe,
    told,
    trace_title,
    versions,
)
from sb3compat.conformance.output.drawing import found_of
from sb3compat.conformance.run.report import Report, Result

STYLES = {
    "failed": "bold red",
    "errored": "bold red",
    "warning": "yellow",
    "xpassed": "yellow",
    "xfailed": "cyan",
    "passed": "green",
    "partly exercised": "magenta",
    "not exercised": "magenta",
    "skipped": "dim",
}
_LABEL_WIDTH = max(map(len, STYLES))
# Without a terminal nothing is wrapped: a message stays on one line, so that it can be searched.
# Only the table needs a limit.
_UNLIMITED = 250
# The table keeps its shape; a narrower terminal breaks the lines itself.
_NARROWEST = 60
_RULE_WIDTH = 80
_LONGEST_REASON = 200
_MOST_NAMES = 3


def show(report: Report, stream: TextIO, *, verbose: bool = False) -> None:
    """Write the report as the stream can show it: its width, its colours, its encoding."""
    text = render(
        report,
        width=shutil.get_terminal_size().columns if stream.isatty() else None,
        colour=may_colour(stream),
        ascii_only=not (stream.encoding or "utf-8").lower().startswith("utf"),
        verbose=verbose,
    )
    stream.write(text)


def may_colour(stream: TextIO) -> bool:
    """Whether a stream shows colours, and its user wants them (https://no-color.org)."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and stream.isatty()


def render(
    report: Report,
    *,
    width: int | None = None,
    colour: bool = False,
    ascii_only: bool = False,
    verbose: bool = False,
) -> str:
    """The report as lines: the failures first, then how many results of each kind a group has.

    Args:
        report: The report.
        width: Where to wrap, at 60 columns or more; None wraps nothing.
        colour: Whether to write colours.
        ascii_only: Whether to draw with ASCII characters; what the environment said stays as it is.
        verbose: Whether to name each check.
    """
    columns = _UNLIMITED if width is None else max(width, _NARROWEST)
    file = io.StringIO()
    console = Console(
        file=file,
        width=columns,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        legacy_windows=False,
        force_jupyter=False,
        markup=False,
        emoji=False,
        highlight=False,
    )
    for part in _parts(report, "-" if ascii_only else "─", verbose):
        # Code and links stay whole, so that they can be copied: the terminal itself breaks them.
        whole = isinstance(part, Text) and (part.no_wrap or width is None)
        console.print(part, soft_wrap=whole)
    # The cells of a table are filled up with spaces.
    return "\n".join(line.rstrip(" ") for line in file.getvalue().split("\n"))


def _parts(report: Report, line: str, verbose: bool) -> Iterator[RenderableType]:
    """What to print, one below the other; `line` is the character of rules."""
    yield Text(safe(report.target), "bold")
    yield Text(headline(report))
    yield Text(versions(report))
    yield from (Text(f"Note: {safe(note)}") for note in report.notes)
    for result in told(report):
        label = report.label(result)
        title = Text(f"{label}: {result.check_id}", STYLES[label])
        rule = Rule(title, characters=line, style=STYLES[label], align="left")
        yield ""
        yield Constrain(rule, _RULE_WIDTH)
        yield from _particulars(result)
    yield from _each_check(report) if verbose else _each_group(report)
    yield ""
    yield Text(report.summary(), STYLES["passed" if report.ok else "failed"])


def _each_group(report: Report) -> Iterator[RenderableType]:
    """A line for each group; then each reason for which there is no verdict, and the checks."""
    table = Table.grid(padding=(0, 2))
    for group, results in by_group(report).items():
        counts = Counter(map(report.label, results))
        said = [
            Text(f"{counts[label]} {label}", STYLES[label]) for label in STYLES if counts[label]
        ]
        table.add_row(Text(group, "bold"), Text(", ").join(said))
    if report.results:
        yield ""
        yield table
    for (label, why), results in reasons(report).items():
        yield ""
        yield Text.assemble((label, STYLES[label]), f": {cut(safe(why), _LONGEST_REASON)}")
        yield Padding(Text(_names(results)), (0, 0, 0, 4))


def _names(results: list[Result]) -> str:
    """The checks, where these are few; of many, how many there are."""
    if len(results) > _MOST_NAMES:
        return f"{len(results)} checks; -v names them"
    return ", ".join(result.check_id for result in results)


def _each_check(report: Report) -> Iterator[RenderableType]:
    for group, results in by_group(report).items():
        yield ""
        yield Text(group, "bold")
        yield Padding(_table(report, results), (0, 0, 0, 2))


def _table(report: Report, results: list[Result]) -> Table:
    """The results of one group: the status, the check, and why there is no verdict."""
    table = Table.grid(padding=(0, 1))
    table.add_column(width=_LABEL_WIDTH)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for result in results:
        label = report.label(result)
        why = cut(safe(reason(result)), _LONGEST_REASON)
        said = Text(f"({why})" if why else "")
        table.add_row(Text(label, STYLES[label]), Text(result.check_id), said)
    return table


def _particulars(result: Result) -> Iterator[RenderableType]:
    found = found_of(result)
    if found is None:
        yield Text(safe(result.message))
    else:
        yield Text(f"Got:      {safe(found.got)} [{found.place}]")
        yield Text(f"Expected: {safe(found.expected)}")
        if found.more:
            yield Text(safe(found.more))
    yield ""
    yield Text(f"Contract: {result.contract}")
    if result.source:
        yield Text(f"Source:   {result.source}", no_wrap=True)
    if result.trace:
        yield from ("", Text(f"{trace_title(result)}:"), "", _block(result.trace))
    if result.reproduction:
        yield from ("", Text("To reproduce it:"), "", _block(result.reproduction))
    yield ""
    yield Text(f"More on this check: sb3compat explain {result.check_id}", no_wrap=True)


def _block(text: str) -> Text:
    return Text(indent(safe(text).rstrip(), "    "), no_wrap=True)
