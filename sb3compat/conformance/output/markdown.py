"""The report as Markdown, for an issue or the summary of a CI run."""

from __future__ import annotations

import re

from sb3compat.conformance.output import by_group, headline, told, versions
from sb3compat.conformance.report import Report, Result


def render(report: Report) -> str:
    """A heading, the table by group, and each failure with its reproduction."""
    parts = [
        f"# {_escaped(report.target)}",
        f"{headline(report)}.\n{versions(report)}.",
        f"**{report.summary()}**",
        *(f"Note: {_escaped(note)}" for note in report.notes),
    ]
    for group, results in by_group(report).items():
        rows = [
            f"| `{result.check_id}` | {report.label(result)} | {_escaped(result.message)} |"
            for result in results
        ]
        table = "\n".join(["| Check | Status | |", "|---|---|---|", *rows])
        parts += [f"## {_escaped(group.capitalize())}", table]
    failures = told(report)
    if failures:
        parts.append("## What failed")
        for result in failures:
            parts += _failure(report, result)
    return "\n\n".join(parts) + "\n"


def _failure(report: Report, result: Result) -> list[str]:
    parts = [
        f"### `{result.check_id}`: {report.label(result)}",
        _escaped(result.message),
        f"Contract: {result.contract} [Source]({result.source})",
    ]
    if result.trace:
        parts += ["What the environment raised:", _fenced(result.trace, "")]
    if result.reproduction:
        parts += ["To reproduce it:", _fenced(result.reproduction, "python")]
    return parts


def _escaped(text: str) -> str:
    """Plain text on one line, also within a table."""
    return re.sub(r"([\\`*_\[\]<>|#&~])", r"\\\1", " ".join(text.split()))


def _fenced(text: str, language: str) -> str:
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.strip()}\n{fence}"
