"""The report as one self-contained page; `page.html.jinja` is its text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from sb3compat.conformance.output import by_group, headline, told, trace_title, versions
from sb3compat.conformance.output.drawing import Found, Timeline, found_of, timeline_of
from sb3compat.conformance.run.report import LABELS, Report, Result

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """What the page says of one result that needs words."""

    result: Result
    label: str
    trace_title: str
    finding: Found | None
    timeline: Timeline | None


def render(report: Report) -> str:
    """A page with the table of all checks, and each failure with its timeline.

    It loads nothing, and forbids the browser to.
    """
    failures = told(report)
    labels = Counter(map(report.label, report.results))
    return (
        _environment()
        .get_template("page.html.jinja")
        .render(
            report=report,
            headline=headline(report),
            versions=versions(report),
            cases=[_case(report, result) for result in failures],
            linked={result.check_id for result in failures},
            counts={label: labels[label] for label in LABELS if labels[label]},
            groups=by_group(report),
            style=(_HERE / "page.css").read_text(encoding="utf-8"),
            script=(_HERE / "page.js").read_text(encoding="utf-8"),
        )
    )


def _case(report: Report, result: Result) -> Case:
    return Case(
        result, report.label(result), trace_title(result), found_of(result), timeline_of(result)
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["classed"] = _class
    return environment


def _class(label: str) -> str:
    """The name of the CSS class of a label."""
    return label.replace(" ", "-")
