"""A trace in the terminal, and as an SVG picture of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sb3compat._trace.record import Call, CallValue, Ending

if TYPE_CHECKING:
    from sb3compat._trace.trace import Trace

_STYLES = {"final": "bold yellow", "first": "bold cyan", "": ""}


def print_trace(console: Console, trace: Trace) -> None:
    """Print one table for each API, row and episode."""
    console.print(Text(trace.name, "bold"), Text(f"seed {trace.seed}, random actions", "dim"))
    console.print(
        Text("■ (last) the last observation of the episode", _STYLES["final"]),
        Text(" ■ (first) the first of the next one", _STYLES["first"]),
    )
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
    lines = [_line(value) for value in call.values]
    lines += [Text(f"✗ {mark.check}: {mark.text}", "bold red") for mark in call.marks]
    return Text("\n").join(lines)


def _line(value: CallValue) -> Text:
    return Text.assemble((f"{value.name} ", "dim"), (value.text, _STYLES[value.role]))


def _summary(trace: Trace) -> Text:
    if not trace.ended:
        return Text("There is nothing to see before an episode ends: allow more steps.", "bold")
    if not trace.marks:
        return Text("Nothing looks wrong in these calls. `sb3compat check` tries many more.")
    ids = ", ".join(dict.fromkeys(mark.check for mark in trace.marks))
    return Text(f"Looks wrong: {ids}. `sb3compat explain ID` says what each asks for.", "bold red")
