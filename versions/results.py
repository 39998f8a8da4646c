"""What came out, and the page that shows it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from versions.pairs import Environment

FILE = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "versions.md"

_HEAD = """\
# Supported versions

sb3compat runs with these versions of Stable-Baselines3 and Gymnasium. `make pairs` runs the tests
on all of them and writes this page. A test is skipped where it needs what a version does not have.
Each change is tested on the newest pair.

Python 3.14 is not supported yet: it has not been tried.
"""
_COLUMNS = (
    "Stable-Baselines3", "Gymnasium", "Python", "Passed", "Failed", "Skipped", "Seconds",
    "Run with", "Profile", "Date",
)  # fmt: skip


@dataclass(frozen=True)
class Result:
    """One run of the suite.

    Attributes:
        passed: How many tests passed.
        failed: How many failed, or could not be run.
        skipped: How many were skipped.
        seconds: How long it took.
        profile: How much the tests tried.
        date: Of the run.
        versions: The releases that were installed, by package.
    """

    passed: int
    failed: int
    skipped: int
    seconds: int
    profile: str
    date: str
    versions: Mapping[str, str]


def counts(summary: str) -> Counter[str]:
    """The numbers in pytest's closing line, such as `{"passed": 7, "failed": 1}`."""
    return Counter({word: int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", summary)})


def read(path: Path = FILE) -> dict[str, Result]:
    """The results so far, by environment."""
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {name: Result(**result) for name, result in found.items()}


def write(results: Mapping[str, Result], path: Path = FILE) -> None:
    """Keep the results."""
    text = json.dumps({name: asdict(results[name]) for name in sorted(results)}, indent=1)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def page(environments: Iterable[Environment], results: Mapping[str, Result]) -> str:
    """The page in the docs."""
    rows = [_COLUMNS, ("---",) * len(_COLUMNS)]
    rows += [_row(each, results.get(each.name)) for each in environments]
    return "\n".join([_HEAD, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def _row(environment: Environment, result: Result | None) -> tuple[str, ...]:
    pair = (environment.sb3 or "none", environment.gymnasium, environment.python)
    if result is None:
        return (*pair, "not run yet", *([""] * (len(_COLUMNS) - len(pair) - 1)))
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    numbers = (result.passed, result.failed, result.skipped, result.seconds)
    return (*pair, *map(str, numbers), versions, result.profile, result.date)
