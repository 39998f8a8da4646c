"""Run all checks in this process, in an order in which each comes after those it depends on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable
from typing import Any

from sb3compat.conformance.contract import Check, checks_of
from sb3compat.conformance.report import Result
from sb3compat.conformance.runner import Settings, run_check
from sb3compat.conformance.subject import Subject, examine

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
    results: dict[str, Result] = {}
    failed: set[str] = set()
    for check in run_order(checks_of(subject.family)):
        if check.id in skip or (only is not None and check.id not in only):
            continue
        if blocked_by(check, failed):
            failed.add(check.id)
            continue
        share = max(seconds, 0.1) if check.id in thorough else seconds
        results[check.id] = run_check(check, subject, Settings(seed, share, make_env))
        if results[check.id].status in ("failed", "errored"):
            failed.add(check.id)
    return results


def broken(factory: Callable[[], Any], seconds: float = 0.02, **options: Any) -> dict[str, str]:
    """The checks that the environment fails, with the messages."""
    known = {k: options.pop(k) for k in ("reference", "options", "declared") if k in options}
    results = judge(examine(factory, **known), seconds=seconds, **options)
    return {k: r.message for k, r in results.items() if r.status in ("failed", "errored")}


def run_order(checks: Iterable[Check]) -> list[Check]:
    """The same checks, each after those that it depends on, else in the order given."""
    waiting = {check.id: check for check in checks}
    ordered: list[Check] = []

    def place(check: Check) -> None:
        if waiting.pop(check.id, None) is None:
            return
        for check_id in check.after:
            if check_id in waiting:
                place(waiting[check_id])
        ordered.append(check)

    for check in list(waiting.values()):
        place(check)
    return ordered


def blocked_by(check: Check, failed: Container[str]) -> str | None:
    """The first check that this one depends on and that has failed, or None.

    One that was skipped as a capability is missing, or that was not exercised, blocks nothing.

    Args:
        check: The check that is to be run.
        failed: The ids of the checks which failed, errored, or were blocked themselves.
    """
    return next((check_id for check_id in check.after if check_id in failed), None)
