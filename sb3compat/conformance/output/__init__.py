"""A report as text: for a terminal, for machines, for a page.

A format is a module of that name with a function `render`, which is imported when it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module

from sb3compat.conformance.findings import FAMILIES
from sb3compat.conformance.run.report import LABELS, Report, Result
from sb3compat.conformance.run.reproduction import CHECK_FAILS

FORMATS = ("terminal", "json", "junit", "markdown", "html")

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# The labels of results with no verdict, or a partial one, which give a reason.
_UNTOLD = ("xfailed", "partly exercised", "not exercised", "skipped")

Renderer = Callable[[Report], str]


def render(report: Report, form: str) -> str:
    """The report in one of the formats; the same for equal reports.

    Args:
        report: The report.
        form: One of `FORMATS`.

    Raises:
        ModuleNotFoundError: If it needs a library that is not installed, rich or jinja2.
    """
    return renderer(form)(report)


def renderer(form: str) -> Renderer:
    """The function that writes a report in one of the formats, see `render`."""
    function: Renderer = import_module(f"{__name__}.{form}").render
    return function


def by_group(report: Report) -> dict[str, list[Result]]:
    """The results under each heading, in the order of the report."""
    groups: dict[str, list[Result]] = {}
    for result in report.results:
        groups.setdefault(result.group, []).append(result)
    return groups


def told(report: Report) -> list[Result]:
    """The results to describe in words, the worst first."""
    worst = LABELS[:4]
    found = [result for result in report.results if report.label(result) in worst]
    return sorted(found, key=lambda result: worst.index(report.label(result)))


def reasons(report: Report) -> dict[tuple[str, str], list[Result]]:
    """The results without a verdict of their own, under their label and the reason for it."""
    found: dict[tuple[str, str], list[Result]] = {}
    for label in _UNTOLD:
        for result in report.results:
            if report.label(result) == label:
                found.setdefault((label, reason(result)), []).append(result)
    return found


def reason(result: Result) -> str:
    """Why there is no verdict, or why a failure is expected; empty for others."""
    if result.status == "xfailed":
        return result.message.rpartition("; expected: ")[2]
    return result.message if result.status.replace("_", " ") in _UNTOLD else ""


def brief(report: Report) -> str:
    """A line for each failure, and for what was exercised in part; the summary is the last one."""
    lines = [f"{report.label(r)}: {r.check_id}: {r.message}" for r in told(report)]
    lines += [
        f"{label}: {why}: {', '.join(result.check_id for result in results)}"
        for (label, why), results in reasons(report).items()
        if label == "partly exercised"
    ]
    return "\n".join([*(" ".join(safe(line).split()) for line in lines), report.summary()])


def safe(text: str) -> str:
    """The text with control characters, which could move the cursor, as Python would write them."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def trace_title(result: Result) -> str:
    """What the trace of a result is."""
    if result.message.startswith(CHECK_FAILS):
        return "Where the check raised"
    raised = "Traceback (most recent call last):" in result.trace
    return "What the environment raised" if raised else "Where it was, the innermost call first"


def headline(report: Report) -> str:
    """What was checked: which interface, how many rows, which seed."""
    mode = f", autoreset mode {report.mode}" if report.mode else ""
    rows = f"{report.num_envs} row" + ("s" if report.num_envs != 1 else "")
    return f"{FAMILIES[report.family]}{mode}, {rows}, seed {report.seed}"


def versions(report: Report) -> str:
    """The versions on one line."""
    return ", ".join(f"{name} {number}" for name, number in report.versions.items())
