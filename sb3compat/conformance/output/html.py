"""The report as one self-contained page."""

from __future__ import annotations

from html import escape
from pathlib import Path

from sb3compat.conformance.output import by_group, headline, told, trace_title, versions
from sb3compat.conformance.output.drawing import finding, timeline
from sb3compat.conformance.run.report import LABELS, Report, Result

_HERE = Path(__file__).parent


def render(report: Report) -> str:
    """A page with the table of all checks, and each failure with its timeline.

    It loads nothing, and forbids the browser to.
    """
    style = (_HERE / "page.css").read_text(encoding="utf-8")
    script = (_HERE / "page.js").read_text(encoding="utf-8")
    notes = "".join(f'<p class="faint">Note: {escape(note)}</p>\n' for note in report.notes)
    tables = "".join(_table(report, group, results) for group, results in by_group(report).items())
    failures = told(report)
    cases = "".join(_case(report, result, n) for n, result in enumerate(failures, 1))
    title = escape(report.target)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>{title}: conformance</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p class="faint">{escape(headline(report))}</p>
<p class="faint">{escape(versions(report))}</p>
{notes}<p class="summary {"ok" if report.ok else "broken"}">{escape(report.summary())}</p>
</header>
<main>
{f"<h2>What failed</h2>{chr(10)}{cases}" if failures else ""}<h2>All checks</h2>
{_filters(report)}
{tables}</main>
<script>
{script}</script>
</body>
</html>
"""


def _filters(report: Report) -> str:
    labels = [report.label(result) for result in report.results]
    buttons = [
        f'<button type="button" data-label="{_class(label)}" aria-pressed="true">'
        f"{labels.count(label)} {label}</button>"
        for label in LABELS
        if label in labels
    ]
    return f'<div class="filters" role="group" aria-label="Show">{"".join(buttons)}</div>'


def _table(report: Report, group: str, results: list[Result]) -> str:
    rows = "".join(_row(report, result) for result in results)
    caption = escape(group.capitalize())
    return f'<table class="checks"><caption>{caption}</caption><tbody>\n{rows}</tbody></table>\n'


def _row(report: Report, result: Result) -> str:
    label = report.label(result)
    name = f"<code>{escape(result.check_id)}</code>"
    if result in told(report):
        name = f'<a href="#{escape(result.check_id)}">{name}</a>'
    said = f"<p>{escape(result.message)}</p>" if result.message else ""
    return (
        f'<tr class="{_class(label)}"><td class="status">{label}</td>'
        f"<td>{name}<p>{_prose(result.contract)}</p>{said}</td></tr>\n"
    )


def _case(report: Report, result: Result, number: int) -> str:
    label = report.label(result)
    parts = [
        f'<section class="case {_class(label)}" id="{escape(result.check_id)}">',
        f'<h3><span class="status">{label}</span>: <code>{escape(result.check_id)}</code></h3>',
        f'<p>{_prose(result.contract)} <a href="{escape(result.source)}" rel="noreferrer">'
        "Source</a></p>",
        finding(result) or f"<p>{escape(result.message)}</p>",
        timeline(result),
    ]
    if result.reproduction:
        parts += [
            f'<div class="copy"><span>To reproduce it</span>'
            f'<button type="button" data-copy="script-{number}">Copy</button></div>',
            f'<pre id="script-{number}">{escape(result.reproduction.rstrip())}</pre>',
        ]
    if result.trace:
        trace = escape(result.trace.rstrip())
        parts.append(
            f"<details><summary>{trace_title(result)}</summary><pre>{trace}</pre></details>"
        )
    return "\n".join(filter(None, [*parts, "</section>"])) + "\n"


def _class(label: str) -> str:
    return label.replace(" ", "-")


def _prose(text: str) -> str:
    """Text in which backticks mark code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if k % 2 else part for k, part in enumerate(parts))
