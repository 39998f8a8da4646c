"""Run checks in this process, each after the checks that it comes after."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from conformance.in_turn import in_turn
from conformance.specimens import every
from conformance.specimens.registry import Specimen, specimens
from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.contract import Check
from sb3compat.conformance.findings import Family
from sb3compat.conformance.run.checking import run_check
from sb3compat.conformance.run.report import Result
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.subject.pace import MOST_PROGRAMS
from sb3compat.conformance.subject.settings import Settings
from sb3compat.conformance.subject.subject import Subject

assert every.MODULES, "they have to be imported before `specimens` is asked"
TRAINING = {"trains_ppo", "trains_off_policy"}
# How many mutants of each interface are tried.
_FEW = 2


def sampled(family: Family) -> list[Specimen]:
    """The mutants that the tests try, of modules that lie apart; `make matrix` tries all."""
    homes = {check.id: check.function.__module__ for check in checks_of(family)}
    first: dict[str, Specimen] = {}
    for mutant in specimens("mutant", family):
        for check_id in sorted(mutant.fails):
            first.setdefault(homes[check_id], mutant)
    mutants = [*{mutant.id: mutant for mutant in first.values()}.values()]
    return mutants[:: len(mutants) // _FEW]


def judge(
    subject: Subject,
    *,
    seconds: float = 0.0,
    seed: int = 0,
    thorough: Collection[str] = (),
    thorough_seconds: float = 0.1,
    skip: Collection[str] = (),
    only: Collection[str] | None = None,
    make_env: str = "make_env = ...",
) -> dict[str, Result]:
    """The results by id; a check that comes after a failed one is skipped.

    Args:
        subject: The environment.
        seconds: The time for each check.
        seed: The seed of the programs.
        thorough: The ids of checks that get more time.
        thorough_seconds: That time.
        skip: The ids of checks that are not run.
        only: The ids of the checks whose results are returned; None for all. The checks that they
            come after are run, too.
        make_env: Source of the factory, for reproductions.
    """
    known = {
        check.id: check for check in checks_of(subject.family, subject.mode) if check.id not in skip
    }
    wanted = known.keys() if only is None else only

    def run(check: Check) -> Result:
        share = max(seconds, thorough_seconds) if check.id in thorough else seconds
        programs = MOST_PROGRAMS if share else 2
        settings = Settings(seed, programs=programs, seconds=share, make_env=make_env)
        shared = instances if check.suited_to(subject).is_clause else None
        return run_check(check, subject, settings, shared)

    # Clauses judge the same records.
    instances = subject.instances()
    needed = _with_those_before(wanted, known)
    try:
        return {
            check.id: result or Result.of(check, "skipped", message="comes after a failed check")
            for check, result in in_turn(subject, needed, run)
            if check.id in wanted
        }
    finally:
        instances.close()


def _with_those_before(wanted: Collection[str], known: dict[str, Check]) -> list[Check]:
    """The checks with these ids, and the checks that they come after."""
    found: dict[str, Check] = {}
    waiting = [name for name in wanted if name in known]
    while waiting:
        check = known[waiting.pop()]
        if check.id not in found:
            found[check.id] = check
            waiting += [name for name in check.after if name in known]
    return [check for check in known.values() if check.id in found]


def bad(results: dict[str, Result]) -> dict[str, str]:
    """The checks that failed, with the messages."""
    failed = {k: r for k, r in results.items() if r.status in ("failed", "errored")}
    return {k: r.message + r.trace for k, r in failed.items()}


def broken(factory: Callable[[], Any], seconds: float = 0.02, **options: Any) -> dict[str, str]:
    """The checks that the environment fails, with the messages."""
    known = {k: options.pop(k) for k in ("reference", "options", "declared") if k in options}
    return bad(judge(examine(factory, **known), seconds=seconds, **options))
