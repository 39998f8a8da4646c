"""The report as Markdown, for an issue or the summary of a CI run."""

from __future__ import annotations

import re

from sb3compat.conformance.output import by_group, headline, told, trace_title, versions
from sb3compat.conformance.output.drawing import found_of
from sb3compat.conformance.run.report import Report, Result


def render(report: Report) -> str:
    """A heading, each failure with its reproduction, and the table by group."""
    parts = [
        f"# {escaped(report.target)}",
        f"{headline(report)}.\n{versions(report)}.",
        f"**{report.summary()}**",
        *(f"Note: {escaped(note)}" for note in report.notes),
    ]
    failures = told(report)
    if failures:
        parts.append("## What failed")
        for result in failures:
            parts += _failure(report, result)
    for group, results in by_group(report).items():
        rows = [
            f"| `{result.check_id}` | {report.label(result)} | {escaped(result.message)} |"
            for result in results
        ]
        table = "\n".join(["| Check | Status | |", "|---|---|---|", *rows])
        parts += [f"## {escaped(group.capitalize())}", table]
    return "\n\n".join(parts) + "\n"


def _failure(report: Report, result: Result) -> list[str]:
    found = found_of(result)
    said = [escaped(result.message)]
    if found is not None:
        got, expected = escaped(f"{found.got} [{found.place}]"), escaped(found.expected)
        said = [f"- Got: {got}\n- Expected: {expected}", *filter(None, [escaped(found.more)])]
    parts = [
        f"### `{result.check_id}`: {report.label(result)}",
        *said,
        f"Contract: {result.contract}" + (f" [Source]({result.source})" if result.source else ""),
    ]
    if result.trace:
        parts += [f"{trace_title(result)}:", fenced(result.trace, "")]
    if result.reproduction:
        parts += ["To reproduce it:", fenced(result.reproduction, "python")]
    return parts


def escaped(text: str) -> str:
    """Plain text on one line, also within a table."""
    return re.sub(r"([\\`*_\[\]<>|#&~])", r"\\\1", " ".join(text.split()))


def fenced(text: str, language: str) -> str:
    """A code block, whatever the text has in it."""
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.strip()}\n{fence}"
