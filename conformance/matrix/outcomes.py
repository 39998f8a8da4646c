"""What the checks say of each specimen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from conformance.in_turn import in_turn
from conformance.matrix.sections import Section
from conformance.specimens.registry import Specimen
from sb3compat.conformance.contract import Check
from sb3compat.conformance.run.checking import run_check
from sb3compat.conformance.run.report import Result
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.subject.settings import Settings

# How often a check is run, each time with other programs: with two of them, the fewest that there
# are, so that no clock has a say in what comes out.
LOOKS = 1
LOOKS_AT_CORRECT = 3
LOOKS_AT_AIMED = 25
PROGRAMS = 2
TRAINING = ("trains_ppo", "trains_off_policy")

KILLED, PASSED, BLOCKED, SKIPPED, IDLE = "killed", "passed", "blocked", "skipped", "not exercised"
PARTLY = "partly exercised"
_WORDS = {
    "failed": KILLED,
    "errored": KILLED,
    "passed": PASSED,
    "partly_exercised": PARTLY,
    "skipped": SKIPPED,
    "not_exercised": IDLE,
}


@dataclass(frozen=True)
class Outcome:
    """What the checks say of one specimen.

    Attributes:
        words: For each check one of `KILLED`, `PASSED`, `PARTLY`, `BLOCKED`, `SKIPPED`, `IDLE`.
        unaided: The checks that kill it by default, when nothing is given but the environment: no
            single environments, options or declarations; None where nothing else is ever given.
    """

    words: dict[str, str]
    unaided: frozenset[str] | None = None

    @property
    def killed(self) -> frozenset[str]:
        return frozenset(name for name, word in self.words.items() if word == KILLED)

    @property
    def by_default(self) -> frozenset[str]:
        """The checks that kill it when nothing is given but the environment."""
        return self.killed if self.unaided is None else self.unaided


Outcomes = dict[str, dict[str, Outcome]]


def examine_all(section: Section, specimen: Specimen) -> Outcome:
    """Run all checks on a specimen, and if anything is given with it once more without."""
    words = _run(section.checks, specimen, specimen.given)
    if not any(specimen.given.values()):
        return Outcome(words)
    again = _run(section.checks, specimen, {})
    unaided = frozenset(name for name, word in again.items() if word == KILLED)
    return Outcome(words, unaided)


def _run(checks: tuple[Check, ...], specimen: Specimen, given: dict[str, Any]) -> dict[str, str]:
    subject = examine(specimen.factory, seconds=60, **given)
    # Clauses judge the same records.
    instances = subject.instances()

    def run(check: Check) -> Result:
        looks = LOOKS if specimen.broken else LOOKS_AT_CORRECT
        if check.id in specimen.fails:
            looks = LOOKS_AT_AIMED
        elif check.id in TRAINING:
            looks = 1
        results = []
        for seed in range(looks):
            settings = Settings(seed, programs=PROGRAMS, seconds=0)
            shared = instances if check.suited_to(subject).is_clause else None
            result = run_check(check, subject, settings, shared)
            if _WORDS[result.status] in (KILLED, SKIPPED):
                return result
            results.append(result)
        return next((result for result in results if result.status == "passed"), results[-1])

    found = {
        check.id: BLOCKED if result is None else _WORDS[result.status]
        for check, result in in_turn(subject, checks, run)
    }
    instances.close()
    return {check.id: found[check.id] for check in checks}


def up_to_date(section: Section, specimen: Specimen, outcomes: Outcomes) -> bool:
    """Whether there is an outcome of each check on it, and of no others."""
    outcome = outcomes.get(section.key, {}).get(specimen.name)
    return outcome is not None and list(outcome.words) == [check.id for check in section.checks]


def problems(sections: Iterable[Section], outcomes: Outcomes) -> list[str]:
    """What must not be: survivors, and kills that nobody meant."""
    found = []
    for section in sections:
        for specimen in section.specimens:
            killed = outcomes[section.key][specimen.name].killed
            where = f"{section.title}: {specimen.name}"
            found += [f"{where} survives {name}" for name in sorted(specimen.fails - killed)]
            besides = sorted(killed - specimen.fails - specimen.may_fail)
            what = "is not said to break" if specimen.broken else "is correct, but is killed by"
            found += [f"{where} {what} {name}" for name in besides]
            told = outcomes[section.key][specimen.name].by_default
            if specimen.broken and not told and not specimen.untold:
                found.append(f"{where} is missed by default, and does not say why")
            if specimen.untold and told & specimen.fails:
                found.append(f"{where} is killed by default, although it says that it cannot be")
    return found
