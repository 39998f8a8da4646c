"""The file that keeps the outcomes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

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

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
OUTCOMES = "kill-matrix/outcomes.json"

# A check that the file does not name for a specimen has passed.
_KEPT = (KILLED, BLOCKED, SKIPPED, IDLE, PARTLY)
_UNAIDED = "killed by default"


def write(path: Path, sections: Iterable[Section], outcomes: Outcomes) -> None:
    """Keep the outcomes, a line for each specimen."""
    blocks = []
    for section in sections:
        found = outcomes[section.key]
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


def read(path: Path) -> Outcomes:
    """The outcomes that `write` has written."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return {
        key: {
            name: _outcome(section["checks"], kept) for name, kept in section["specimens"].items()
        }
        for key, section in document.items()
    }


def _outcome(checks: list[str], kept: dict[str, list[str]]) -> Outcome:
    words = dict.fromkeys(checks, PASSED)
    for word in _KEPT:
        words |= dict.fromkeys(kept.get(word, ()), word)
    return Outcome(words, frozenset(kept[_UNAIDED]) if _UNAIDED in kept else None)
