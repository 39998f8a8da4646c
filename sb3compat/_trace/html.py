"""A trace as a self-contained page; `trace.html.jinja` is its text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from sb3compat._trace.record import Layout, marks_in


def as_html(name: str, layouts: Sequence[Layout], *, seed: int, steps: int) -> str:
    """A page with the layouts side by side: a table for each ending, with a row for each API.

    Args:
        name: The environment.
        layouts: What each API sees.
        seed: The seed of the environment and of the actions.
        steps: The most steps that each API may have taken.
    """
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    by_api = [(layout, {(e.row, e.episode): e for e in layout.endings}) for layout in layouts]
    episodes = sorted({key for _, endings in by_api for key in endings})
    page = environment.get_template("trace.html.jinja")
    return page.render(
        name=name, by_api=by_api, episodes=episodes, seed=seed, steps=steps, marks=marks_in(layouts)
    )
