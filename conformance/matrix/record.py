"""The file that keeps the outcomes, with the versions and the sources that they are of."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from conformance.age import digest_of
from conformance.matrix.outcomes import (
    BLOCKED,
    IDLE,
    KILLED,
    PARTLY,
    PASSED,
    SKIPPED,
    Outcome,
    Outcomes,
)
from conformance.matrix.sections import Section
from sb3compat.conformance.checks.catalogue import checks_of

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
OUTCOMES = "kill-matrix/outcomes.json"

# A check that the file does not name for a specimen has passed.
_KEPT = (KILLED, BLOCKED, SKIPPED, IDLE, PARTLY)
_UNAIDED = "killed by default"
_PACKAGES = ("gymnasium", "stable-baselines3")


@dataclass(frozen=True)
class Record:
    """The outcomes of a run.

    Attributes:
        versions: Those of the libraries.
        digest: That of the sources.
        outcomes: For each section and specimen.
    """

    versions: dict[str, str]
    digest: str
    outcomes: Outcomes


def versions() -> dict[str, str]:
    """The versions of the libraries that are installed."""
    return {package: version(package) for package in _PACKAGES}


def present() -> str:
    """The digest of the sources that there are: of the checks, and of all that they are run on."""
    checks = {check.function.__module__ for check in checks_of()}
    return digest_of("conformance.matrix.outcomes", *sorted(checks))


def write(path: Path, sections: Iterable[Section], record: Record) -> None:
    """Keep the outcomes, a line for each specimen."""
    blocks = [
        f'"versions": {json.dumps(record.versions)}',
        f'"digest": {json.dumps(record.digest)}',
    ]
    for section in sections:
        found = record.outcomes[section.key]
        checks = json.dumps([check.id for check in section.checks])
        lines = ",\n".join(
            f"  {json.dumps(specimen.name)}: {json.dumps(_kept(found[specimen.name]))}"
            for specimen in section.specimens
        )
        body = f' "checks": {checks},\n "specimens": {{\n{lines}\n }}'
        blocks.append(f"{json.dumps(section.key)}: {{\n{body}\n}}")
    text = ",\n".join(blocks)
    path.write_text(f"{{\n{text}\n}}\n", encoding="utf-8", newline="\n")


def _kept(outcome: Outcome) -> dict[str, list[str]]:
    kept = {
        word: [name for name, found in outcome.words.items() if found == word] for word in _KEPT
    }
    kept = {word: names for word, names in kept.items() if names}
    if outcome.unaided is not None:
        kept[_UNAIDED] = [name for name in outcome.words if name in outcome.unaided]
    return kept


def read(path: Path) -> Record:
    """The record that `write` has written."""
    document = json.loads(path.read_text(encoding="utf-8"))
    found, digest = document.pop("versions"), document.pop("digest")
    outcomes = {
        key: {
            name: _outcome(section["checks"], kept) for name, kept in section["specimens"].items()
        }
        for key, section in document.items()
    }
    return Record(found, digest, outcomes)


def _outcome(checks: list[str], kept: dict[str, list[str]]) -> Outcome:
    words = dict.fromkeys(checks, PASSED)
    for word in _KEPT:
        words |= dict.fromkeys(kept.get(word, ()), word)
    return Outcome(words, frozenset(kept[_UNAIDED]) if _UNAIDED in kept else None)
