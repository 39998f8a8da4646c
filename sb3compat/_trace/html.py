"""A trace as a self-contained page; `trace.html.jinja` is its text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined

if TYPE_CHECKING:
    from sb3compat._trace.trace import Trace


def as_html(trace: Trace) -> str:
    """A page with the layouts side by side: a table for each ending, with a row for each API."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    by_api = [(layout, {(e.row, e.episode): e for e in layout.endings}) for layout in trace.layouts]
    episodes = sorted({key for _, endings in by_api for key in endings})
    page = environment.get_template("trace.html.jinja")
    return page.render(vars(trace), by_api=by_api, episodes=episodes, marks=trace.marks)
