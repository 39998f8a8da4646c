"""A trace in the terminal, and as an SVG picture of it."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sb3compat._trace.record import Call, Ending, Part
from sb3compat._trace.words import shortened

if TYPE_CHECKING:
    from sb3compat._trace.trace import Trace

STYLES = {"final": "bold yellow", "first": "bold cyan"}
LEGEND = {"final": "the last observation of the episode", "first": "the first of the next one"}
# For those who see no colours, and output that has none.
WORDS = {"final": " (last)", "first": " (first)", "": ""}


def console_of(width: int | None) -> Console:
    """A console on the standard output."""
    return Console(file=sys.stdout, width=width)


def as_svg(trace: Trace, width: int) -> str:
    """The same as a picture."""
    console = Console(file=io.StringIO(), record=True, width=width, force_terminal=True)
    print_trace(trace, console)
    return console.export_svg(title=trace.name)


def print_trace(trace: Trace, console: Console) -> None:
    """Print a trace, one table for each row, episode and API."""
    legend = Text("  ").join(
        Text(f"■{WORDS[role]} {words}", STYLES[role]) for role, words in LEGEND.items()
    )
    console.print(Text(trace.name, "bold"), Text(f"seed {trace.seed}, random actions", "dim"))
    console.print(legend)
    for layout in trace.layouts:
        console.print()
        console.rule(Text.assemble((layout.api, "bold"), f"  {layout.how}"), align="left")
        if layout.refusal:
            console.print(Text(f"Not possible: {layout.refusal}", "dim"))
        elif not layout.endings:
            console.print(Text(f"No episode ended within {trace.steps} steps.", "dim"))
        for ending in layout.endings:
            console.print(_table(ending))
    console.print()
    console.print(_summary(trace))


def _table(ending: Ending) -> Table:
    """The calls around an ending as columns."""
    title = Text(f"row {ending.row}, episode {ending.episode}: {ending.length} steps")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, expand=False)
    for call in ending.calls:
        table.add_column(f"{call.name}, the end" if call.ended else call.name, overflow="fold")
    table.add_row(*(_cell(call) for call in ending.calls))
    return table


def _cell(call: Call) -> Text:
    lines = [_line(part) for part in call.parts]
    lines += [Text(f"✗ {mark.check}: {mark.text}", "bold red") for mark in call.marks]
    return Text("\n").join(lines)


def _line(part: Part) -> Text:
    value = shortened(part.value) + WORDS[part.role]
    return Text.assemble((f"{part.name} ", "dim"), (value, STYLES.get(part.role, "")))


def _summary(trace: Trace) -> Text:
    if not trace.ended:
        return Text("There is nothing to see before an episode ends: allow more steps.", "bold")
    if not trace.marks:
        return Text("Nothing looks wrong in these calls. `sb3compat check` tries many more.")
    ids = ", ".join(dict.fromkeys(mark.check for mark in trace.marks))
    return Text(f"Looks wrong: {ids}. `sb3compat explain ID` says what each asks for.", "bold red")
