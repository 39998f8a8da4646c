"""A report as text: for a terminal, for machines, for a page.

A format is a module of that name with a function `render`, which is imported when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from sb3compat.conformance.findings import FAMILIES
from sb3compat.conformance.run.report import LABELS, Report, Result
from sb3compat.errors import install_line

FORMATS = ("terminal", "json", "junit", "markdown", "html")
# What a format needs that the kit itself does not.
_LIBRARIES = {"terminal": "rich", "html": "jinja2"}

Renderer = Callable[[Report], str]


class MissingLibraryError(ModuleNotFoundError):
    """A format needs a library that is not installed."""


def render(report: Report, form: str) -> str:
    """The report in one of the formats; the same for equal reports.

    Args:
        report: The report.
        form: One of `FORMATS`.

    Raises:
        MissingLibraryError: If the format needs a library that is not installed.
    """
    return renderer(form)(report)


def renderer(form: str) -> Renderer:
    """The function that writes a report in one of the formats.

    Args:
        form: One of `FORMATS`.

    Raises:
        MissingLibraryError: If the format needs a library that is not installed.
    """
    library = _LIBRARIES.get(form)
    try:
        module = import_module(f"{__name__}.{form}")
    except ModuleNotFoundError as error:
        if library is None or error.name is None or error.name.partition(".")[0] != library:
            raise
        raise MissingLibraryError(
            f"Expected {library} to be installed, which the {form} report is written with. Install "
            f"it: {install_line('conformance')}",
            name=library,
        ) from error
    function: Renderer = module.render
    return function


def by_group(report: Report) -> dict[str, list[Result]]:
    """The results under each heading, in the order of the report."""
    groups: dict[str, list[Result]] = {}
    for result in report.results:
        groups.setdefault(result.group, []).append(result)
    return groups


def told(report: Report) -> list[Result]:
    """The results that need words, the worst first."""
    worst = LABELS[:4]
    found = [result for result in report.results if report.label(result) in worst]
    return sorted(found, key=lambda result: worst.index(report.label(result)))


def trace_title(result: Result) -> str:
    """What the trace of a result is."""
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
