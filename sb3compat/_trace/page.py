"""A trace as a self-contained page; `page.html.jinja` is its text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from sb3compat._trace.words import shortened

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
    environment.filters["shortened"] = shortened
    places = sorted({place for layout in trace.layouts for place in layout.by_place})
    page = environment.get_template("page.html.jinja")
    return page.render(trace=trace, places=places)
