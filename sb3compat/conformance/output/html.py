"""The report as one self-contained page; `page.html.jinja` is its text."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from sb3compat.conformance.output import by_group, headline, told, trace_title, versions
from sb3compat.conformance.output.drawing import found_of, timeline_of
from sb3compat.conformance.run.report import LABELS, Report

_HERE = Path(__file__).parent


def render(report: Report) -> str:
    """A page with the table of all checks, and each failure with its timeline.

    It loads nothing, and forbids the browser to.
    """
    labels = Counter(map(report.label, report.results))
    return (
        _environment()
        .get_template("page.html.jinja")
        .render(
            report=report,
            headline=headline(report),
            versions=versions(report),
            failures=told(report),
            trace_title=trace_title,
            found_of=found_of,
            timeline_of=timeline_of,
            counts={label: labels[label] for label in LABELS if labels[label]},
            groups=by_group(report),
            style=(_HERE / "page.css").read_text(encoding="utf-8"),
            script=(_HERE / "page.js").read_text(encoding="utf-8"),
        )
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
