"""Run all checks in this process, in an order in which each comes after those it depends on."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from conformance.in_turn import in_turn
from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.contract import Check
from sb3compat.conformance.run.report import Result
from sb3compat.conformance.run.search import run_check
from sb3compat.conformance.run.settings import Settings
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.subject.subject import Subject

TRAINING = {"trains_ppo", "trains_off_policy"}


def judge(
    subject: Subject,
    *,
    seconds: float,
    seed: int = 0,
    thorough: Collection[str] = (),
    skip: Collection[str] = (),
    only: Collection[str] | None = None,
    make_env: str = "make_env = ...",
) -> dict[str, Result]:
    """The results by id; what depends on a failed check is left out.

    Args:
        subject: What is checked.
        seconds: For each check.
        seed: Of the programs.
        thorough: Checks that get a multiple of that time.
        skip: Checks that are not run.
        only: Checks that are run, and no others.
        make_env: Source of the factory, for reproductions.
    """

    def run(check: Check) -> Result:
        share = max(seconds, 0.1) if check.id in thorough else seconds
        return run_check(check, subject, Settings(seed, share, make_env))

    wanted = [
        check
        for check in checks_of(subject.family)
        if check.id not in skip and (only is None or check.id in only)
    ]
    return {check.id: result for check, result in in_turn(subject, wanted, run) if result}


def broken(factory: Callable[[], Any], seconds: float = 0.02, **options: Any) -> dict[str, str]:
    """The checks that the environment fails, with the messages."""
    known = {k: options.pop(k) for k in ("reference", "options", "declared") if k in options}
    results = judge(examine(factory, **known), seconds=seconds, **options)
    return {k: r.message for k, r in results.items() if r.status in ("failed", "errored")}
