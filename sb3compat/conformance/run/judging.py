"""One clause, judged on the records of the process; what breaks it is shrunk."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

from sb3compat.conformance.contract import BASICS, Check
from sb3compat.conformance.findings import Finding, said_by
from sb3compat.conformance.judge import Records, Verdict, records_of, verdict
from sb3compat.conformance.program.instances import Instances
from sb3compat.conformance.program.trace import trace_of
from sb3compat.conformance.programs import batch
from sb3compat.conformance.record import Record, raised
from sb3compat.conformance.render import lines_of, statement, told
from sb3compat.conformance.run.report import Result
from sb3compat.conformance.run.reproduction import (
    OWN_MISTAKE,
    Failure,
    failed,
    failure_to_make,
)
from sb3compat.conformance.run.settings import Settings
from sb3compat.conformance.shrink import Ops, shrunk
from sb3compat.conformance.subject.pace import shrinks_of
from sb3compat.conformance.subject.subject import Subject


def judged(check: Check, subject: Subject, settings: Settings, instances: Instances) -> Result:
    """The result of a clause.

    Args:
        check: The clause.
        subject: The environment.
        settings: How many programs there are.
        instances: Those of the process, with the records that are known.
    """
    begin = time.perf_counter()
    records = records_of(subject, instances)
    known = records.of(settings)
    verdicts = [_verdict(check, record) for record in known]
    result = _result(_Judging(check, subject, settings, instances, records), known, verdicts)
    return replace(result, seconds=time.perf_counter() - begin, examples=len(known))


def _verdict(check: Check, record: Record) -> Verdict:
    """The verdict of a clause; an exception of it is its own mistake."""
    try:
        return verdict(check.function, record)  # type: ignore[arg-type]
    except Exception as error:
        return Verdict(mistake=error)


class _Judging:
    """What the programs of one clause share."""

    def __init__(
        self,
        check: Check,
        subject: Subject,
        settings: Settings,
        instances: Instances,
        records: Records,
    ) -> None:
        self.check, self.subject, self.settings = check, subject, settings
        self.instances, self._records = instances, records

    def broken(self, record: Record) -> Failure:
        """The failure on a record whose clause does not hold, with the smallest program."""
        smallest = record

        def fails(ops: Ops) -> bool:
            nonlocal smallest
            again = self._records.play(self.settings, lambda *_: ops, new=True)
            if _verdict(self.check, again).broken is None:
                return False
            smallest = again
            return True

        if fails(record.ops):  # otherwise not every time
            tries = shrinks_of(self.settings.programs)
            actions = [batch(self.subject, [a] * self.subject.num_envs) for a in self._simplest]
            shrunk(record.ops, fails, actions, tries)
        demand = _verdict(self.check, smallest).broken
        assert demand is not None
        finding, message = told(smallest, demand)
        return Failure("failed", message, "", lines_of(smallest, demand), finding)

    @property
    def _simplest(self) -> list[object]:
        return list(self.subject.actions[:3])

    def errored(self, record: Record) -> Failure:
        """The failure of a record that an exception has ended."""
        assert record.error is not None
        if record.error is self.instances.failure:
            return failure_to_make(self.instances, record.error, record.trace)
        lines = ["env = make_env()", *map(statement, record.calls)]
        if record.failed_op is not None:
            lines.append(record.failed_op.source)
        step = record.calls[-1].step if record.calls else 0
        step += record.failed_op is not None and record.failed_op.method == "step"
        finding = Finding(lines[-1], said_by(record.error), "no exception", step)
        return Failure("errored", raised(record), record.trace, tuple(lines), finding)


def _result(judging: _Judging, records: list[Record], verdicts: list[Verdict]) -> Result:
    check = judging.check
    pairs = list(zip(records, verdicts, strict=True))
    for _, found in pairs:
        if found.mistake is not None:
            message = f"the check itself raised {said_by(found.mistake)}. {OWN_MISTAKE}"
            failure = Failure("errored", message, trace_of(found.mistake), (), None, own=True)
            return failed(check, judging.subject, judging.settings, failure)
    for record, found in pairs:
        if found.broken is not None:
            return failed(check, judging.subject, judging.settings, judging.broken(record))
    exercised = any(found.exercised for found in verdicts)
    for record in records:
        if record.error is not None and (_reports(check, record) or not exercised):
            return failed(check, judging.subject, judging.settings, judging.errored(record))
    return _unbroken(check, verdicts)


def _unbroken(check: Check, verdicts: Iterable[Verdict]) -> Result:
    """The result of a clause that no record breaks."""
    exercised = [found for found in verdicts if found.exercised]
    missing = next((found.missing for found in verdicts if found.missing), "")
    if exercised and not missing:
        return Result.of(check, "passed")
    if missing:
        return Result.of(check, "partly_exercised", message=missing)
    reason = next((found.reason for found in verdicts if found.reason), "no program reached it")
    return Result.of(check, "not_exercised", message=reason)


def _reports(check: Check, record: Record) -> bool:
    """Whether a clause is the one that reports an exception: the first about this method."""
    method = "reset" if record.failed_op is None else record.failed_op.method
    about = next((name for name in BASICS[check.family] if name.startswith(method)), "")
    return check.id == (about or BASICS[check.family][0])
