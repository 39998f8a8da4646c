"""What came out, and the pages that show it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from versions.libraries import LIBRARIES
from versions.pairs import Environment, environments

FILE = Path(__file__).with_name("results.json")
REFERENCE = Path(__file__).parents[1] / "docs" / "reference"

_PAIRS = """\
# Supported versions

sb3compat runs with these versions of Stable-Baselines3 and Gymnasium. `make pairs` runs the tests
with each pair and writes this page. A test is skipped if it needs a feature that a version does not
have. Each change is tested with the newest pair.

Python 3.14 is not supported yet: it has not been tried. Of the releases that the tests install,
only pygame 2.6.1, with which Gymnasium draws CartPole, has no wheel for it.
"""
_SCRIPTS = """\
# Training scripts of other libraries

Scripts of other libraries train on adapted environments, and must learn the same as on the
environments that they normally use. The scripts are in `tests/real/`. `make real` runs each in its
own virtual environment and writes this page.
"""
_COLUMNS = ("Passed", "Failed", "Skipped", "Seconds", "Run with", "Profile", "Date")
_PAIR = ("Stable-Baselines3", "Gymnasium", "Python")


@dataclass(frozen=True)
class Result:
    """One run of the suite, or of a library's scripts.

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


def pages(results: Mapping[str, Result]) -> dict[str, str]:
    """The pages in the docs, by the names of their files."""
    return {
        "versions.md": _page(_PAIRS, _PAIR, environments(), results),
        "training-scripts.md": _page(_SCRIPTS, ("Library", *_PAIR), LIBRARIES, results),
    }


def _page(
    head: str, pair: Sequence[str], tried: Sequence[Environment], results: Mapping[str, Result]
) -> str:
    columns = (*pair, *_COLUMNS)
    rows = [columns, ("---",) * len(columns), *(_row(each, results) for each in tried)]
    return "\n".join([head, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def _row(environment: Environment, results: Mapping[str, Result]) -> tuple[str, ...]:
    pair: tuple[str, ...] = (environment.sb3 or "none", environment.gymnasium, environment.python)
    if environment.library:
        pair = (environment.library, *pair)
    result = results.get(environment.name)
    if result is None:
        return (*pair, "not run yet", *([""] * (len(_COLUMNS) - 1)))
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    numbers = (result.passed, result.failed, result.skipped, result.seconds)
    return (*pair, *map(str, numbers), versions, result.profile, result.date)
