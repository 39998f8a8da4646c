"""One clause, judged on the records of the process; what breaks it is shrunk."""

from __future__ import annotations

from collections.abc import Iterable

from sb3compat.conformance.contract import BASICS, Check
from sb3compat.conformance.findings import Finding, said_by
from sb3compat.conformance.judge import Demand, Records, Verdict, verdict
from sb3compat.conformance.program.instances import Instances
from sb3compat.conformance.record import Record
from sb3compat.conformance.recording import raised
from sb3compat.conformance.render import lines_of, statements, told
from sb3compat.conformance.run.report import UNREACHED, Result
from sb3compat.conformance.run.reproduction import (
    Failure,
    failed,
    failure_to_make,
    mistaken,
)
from sb3compat.conformance.shrink import Ops, shrunk
from sb3compat.conformance.subject.actions import batch
from sb3compat.conformance.subject.pace import shrinks_of
from sb3compat.conformance.subject.settings import Settings
from sb3compat.conformance.subject.subject import Subject

# The clause that reports an exception in the step after an end.
_AFTER_AN_END = "autoreset_like_reset"
# So many actions are tried in the place of all others.
_FEW_ACTIONS = 3


class Judging:
    """A clause or a comparison, judged on the records that are known in the process.

    Attributes:
        count: The number of programs.
    """

    def __init__(
        self, check: Check, subject: Subject, settings: Settings, instances: Instances
    ) -> None:
        self._check, self._subject, self._settings = check, subject, settings
        self._records = instances.records = instances.records or Records(subject, instances)
        self.count = 0

    def result(self) -> Result:
        """The result."""
        found = self._judged() or self._judged()
        assert found is not None, "the records are new now"
        return found

    def _judged(self) -> Result | None:
        """The result; None if new instances are needed first."""
        # What hangs or crashes in a step is told by the clause about steps.
        first = self._check.id == BASICS[self._check.family][0]
        groups = (
            self._records.resets(self._settings)
            if first
            else self._records.of(self._settings, self._check.variant)
        )
        self.count = len(groups)
        verdicts = [verdict(self._check.function, *records) for records in groups]
        for found in verdicts:
            if found.mistake is not None:
                return self._failed(mistaken(self._check, found.mistake))
        for records, found in zip(groups, verdicts, strict=True):
            if found.broken is not None:
                failure = self._broken(records, found.broken)
                return None if failure is None else self._failed(failure)
        exercised = any(found.exercised for found in verdicts)
        for records in groups:
            record = next((each for each in records if each.error is not None), None)
            if record is not None and self._reports(record, exercised):
                return self._failed(self._errored(records, record))
        return self._unbroken(verdicts)

    def _failed(self, failure: Failure) -> Result:
        return failed(self._check, self._subject, self._settings, failure)

    def _broken(self, records: tuple[Record, ...], demand: Demand) -> Failure | None:
        """The failure with the smallest program; None if only used instances show it."""
        smallest, shown = records, demand

        def fails(ops: Ops) -> bool:
            nonlocal smallest, shown
            again = self._records.again(self._settings, ops, self._check.variant)
            broken = verdict(self._check.function, *again).broken
            if broken is not None:
                smallest, shown = again, broken
            return broken is not None

        ops = records[0].ops
        if fails(ops):
            calls = [value.call for value in demand.values if value.call < len(ops)]
            last = max(calls, default=-1) + 1
            if records[0].error is None and 0 < last < len(ops) and fails(ops[:last]):
                ops = ops[:last]
            simplest = self._subject.actions[:_FEW_ACTIONS]
            known = [batch(self._subject, [a] * self._subject.num_envs) for a in simplest]
            shrunk(ops, fails, known, shrinks_of(self._subject, self._settings.programs))
        elif any(record.used for record in records) and self._records.renew():
            return None
        finding, message = told(smallest, shown)
        return Failure("failed", message, "", lines_of(smallest, shown), finding)

    def _errored(self, records: tuple[Record, ...], record: Record) -> Failure:
        """The failure of a record that an exception has ended."""
        assert record.error is not None
        if record.failed_in:
            return failure_to_make(record.failed_in, record.error, record.trace)
        lines = list(statements(records[: records.index(record) + 1]))
        step = max((call.step for call in record.calls), default=0)
        step += record.failed_op is not None and record.failed_op.method == "step"
        finding = Finding(lines[-1], said_by(record.error), "no exception", step)
        return Failure("errored", raised(record), record.trace, tuple(lines), finding, record.error)

    def _reports(self, record: Record, exercised: bool) -> bool:
        """Whether this clause is the one to report an exception.

        The first clause of all reports those of its resets, and the clause about steps all
        others; but a step of a `VectorEnv` that raises after an end is left to the clause that
        comes after the check of the autoreset mode. A comparison reports those of its variant
        alone, and each clause those of records if none exercises it.
        """
        if record.name != "env" or not exercised:
            return True
        first, second, *_ = BASICS[self._check.family]
        last = record.calls[-1] if record.calls else None
        ended = last is not None and last.is_step and last.complete and bool(last.ended)
        if ended and self._check.family == "vector_env" and record.ops[-1].method == "step":
            return self._check.id == _AFTER_AN_END
        return self._check.id in (first, second)

    def _unbroken(self, verdicts: Iterable[Verdict]) -> Result:
        """The result of a clause that no record breaks."""
        missing = next((found.missing for found in verdicts if found.missing), "")
        if missing:
            return Result.of(self._check, "partly_exercised", message=missing)
        if any(found.exercised for found in verdicts):
            return Result.of(self._check, "passed")
        usual = UNREACHED if self._subject.endings else "no episode ended"
        reason = next((found.reason for found in verdicts if found.reason), usual)
        return Result.of(self._check, "not_exercised", message=reason)
