"""Run one check in this process."""

from __future__ import annotations

import time
from dataclasses import replace

from sb3compat.conformance.checks.tools.singles import stable
from sb3compat.conformance.contract import BASICS, Check
from sb3compat.conformance.findings import NO_REFERENCE
from sb3compat.conformance.judge import Records
from sb3compat.conformance.program.instances import Instances
from sb3compat.conformance.replays import beside
from sb3compat.conformance.run.judging import Judging
from sb3compat.conformance.run.report import Result
from sb3compat.conformance.run.staging import Staging
from sb3compat.conformance.subject.settings import Settings
from sb3compat.conformance.subject.subject import Subject


def lacking(check: Check, subject: Subject) -> Result | None:
    """The result of a check that needs what the environment does not have, or None."""
    missing = subject.missing(check.needs)
    if missing:
        return Result.of(check, "skipped", message=f"needs the capability {missing[0]!r}")
    return None


def made_records(check: Check, subject: Subject, settings: Settings, instances: Instances) -> None:
    """Make the records that clauses share, if a check needs them."""
    if check.is_clause and check.id != BASICS[check.family][0]:
        instances.records = instances.records or Records(subject, instances)
        for [record] in instances.records.of(settings):
            for each in beside(record):
                stable(each)


def run_check(
    check: Check, subject: Subject, settings: Settings, instances: Instances | None = None
) -> Result:
    """Run one check in this process.

    Args:
        check: The check.
        subject: The environment.
        settings: How to run it.
        instances: Those of the process; None if this is all that it runs.
    """
    if skipped := lacking(check, subject):
        return skipped
    suited = check.suited_to(subject)
    shared = instances or subject.instances()
    begin = time.perf_counter()
    kind = Judging if suited.is_clause else Staging
    runs = kind(suited, subject, settings, shared)
    try:
        result = runs.result()
    finally:
        if instances is None:
            shared.close()
    result = replace(result, seconds=time.perf_counter() - begin, examples=runs.count)
    if suited is not check and result.status == "passed":
        return replace(result, status="partly_exercised", message=NO_REFERENCE)
    return result
