"""Checks in an order that respects which comes after which, and on how many processors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from sb3compat.conformance.contract import Check
from sb3compat.conformance.run.report import Result
from sb3compat.conformance.subject.subject import Subject


def in_turn(
    subject: Subject, checks: Iterable[Check], run: Callable[[Check], Result]
) -> Iterator[tuple[Check, Result | None]]:
    """Each check with its result, or None if a check that it comes after has failed.

    As in a run of the kit, a check that was skipped for a missing capability, or was not exercised,
    blocks nothing.

    Args:
        subject: The environment.
        checks: The checks to run.
        run: Runs a check.
    """
    failed: set[str] = set()
    for check in run_order(checks):
        blocked = not subject.missing(check.needs) and any(name in failed for name in check.after)
        result = None if blocked else run(check)
        if result is None or result.status in ("failed", "errored"):
            failed.add(check.id)
        yield check, result


def run_order(checks: Iterable[Check]) -> list[Check]:
    """The checks, each after those that it comes after, otherwise in the order given."""
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


def usable_processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
