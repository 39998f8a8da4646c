"""A report with one result of each kind, and the snapshots of how it is shown.

The report is the snapshot `report.json`. After a change that is meant,
`python -m tests.conformance.sample` writes the snapshots anew; read the diff, and look at the page
in a browser, before you commit.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sb3compat.conformance.output import brief, render, terminal
from sb3compat.conformance.output.json import load
from sb3compat.conformance.run.report import Report

SNAPSHOTS = Path(__file__).with_name("snapshots")


def sample(*, strict: bool = False) -> Report:
    return replace(load((SNAPSHOTS / "report.json").read_text("utf-8")), strict=strict)


EMPTY = replace(sample(), results=(), notes=())


def snapshots() -> dict[str, str]:
    report = sample()
    return {
        "report.txt": render(report, "terminal"),
        "report.colour.txt": terminal.render(report, width=80, colour=True),
        "verbose.txt": terminal.render(report, verbose=True),
        "quiet.txt": brief(report) + "\n",
        "report.json": render(report, "json"),
        "report.junit.xml": render(report, "junit"),
        "report.md": render(report, "markdown"),
        "report.html": render(report, "html"),
        "strict.txt": render(sample(strict=True), "terminal"),
        "strict.junit.xml": render(sample(strict=True), "junit"),
    }


if __name__ == "__main__":
    for name, text in snapshots().items():
        (SNAPSHOTS / name).write_text(text, encoding="utf-8", newline="\n")
        print("wrote", SNAPSHOTS / name)
