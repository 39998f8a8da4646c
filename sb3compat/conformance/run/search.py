"""Run a check: as many programs as its settings say, and the smallest one that fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from sb3compat.conformance.contract import Check
from sb3compat.conformance.findings import (
    EnvFailureError,
    Finding,
    NotExercisedError,
    ViolationError,
    said_by,
)
from sb3compat.conformance.play import NO_REFERENCE, Play
from sb3compat.conformance.program.instances import Instances
from sb3compat.conformance.program.journal import Journal
from sb3compat.conformance.program.perturb import perturb
from sb3compat.conformance.program.script import Script
from sb3compat.conformance.run.judging import judged
from sb3compat.conformance.run.report import Result
from sb3compat.conformance.run.reproduction import (
    FACTORY_FAILS,
    NOT_EVERY_TIME,
    Failure,
    failed,
    failure_to_make,
    mistaken,
    repeats,
)
from sb3compat.conformance.run.staging import staged
from sb3compat.conformance.subject.pace import makes_of, program_seconds, shrinks_of
from sb3compat.conformance.subject.settings import Settings
from sb3compat.conformance.subject.subject import Subject

_FEWEST_EXAMPLES = 2
# A single program is enough if it takes so many seconds and there is no time for two.
_SLOW = 1.0
# The time for shrinking a failure, as a multiple of the time for the search.
_SHRINK_SHARE = 2.0


class _EnoughError(BaseException):
    """Ends the search. Hypothesis would take an `Exception` for a failure."""


class _UnlikeNewError(BaseException):
    """Ends a search: a program fails, but not with instances that no other one has used."""


def lacking(check: Check, subject: Subject) -> Result | None:
    """The result of a check that needs what the environment does not have, or None."""
    missing = subject.missing(check.needs)
    if missing:
        return Result.of(check, "skipped", message=f"needs the capability {missing[0]!r}")
    return None


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
    result = _run(suited, subject, settings, instances)
    if suited is not check and result.status == "passed":
        return replace(result, status="partly_exercised", message=NO_REFERENCE)
    return result


def _run(check: Check, subject: Subject, settings: Settings, instances: Instances | None) -> Result:
    shared = instances or subject.instances()
    if check.is_clause or check.is_scenario:
        try:
            return (judged if check.is_clause else staged)(check, subject, settings, shared)
        finally:
            if instances is None:
                shared.close()
    begin = time.perf_counter()
    search = _Search(check, subject, settings, shared)
    try:
        try:
            search.run()
        except _UnlikeNewError:
            shared.close()
            search.close()
            search = _Search(check, subject, settings, shared, new=True)
            search.run()
    finally:
        search.close()
        if instances is None:
            shared.close()
    seconds = time.perf_counter() - begin
    if search.best is not None and search.first is not None:
        result = failed(check, subject, settings, search.best)
        if NOT_EVERY_TIME in result.message and search.best is not search.first:
            result = failed(check, subject, settings, search.first)
    elif search.exercised:
        result = Result.of(check, "passed")
    elif search.missing:
        result = Result.of(check, "partly_exercised", message=search.missing)
    else:
        result = Result.of(check, "not_exercised", message=search.reason)
    return replace(result, seconds=seconds, examples=search.examples)


class _Search:
    """Hypothesis draws programs; the smallest that fails is kept."""

    def __init__(
        self,
        check: Check,
        subject: Subject,
        settings: Settings,
        instances: Instances,
        *,
        new: bool = False,
    ) -> None:
        self.check, self.subject, self.settings = check, subject, settings
        self.best: Failure | None = None
        self.first: Failure | None = None
        self.exercised = False
        self.reason = ""
        self.missing = ""
        self.examples = 0
        self._instances, self._new = instances, new or check.new
        self._journal = Journal(settings.journal)
        self.out_of_time = False
        self._calls = instances.calls
        self._deadline = time.perf_counter() + settings.seconds
        slow = program_seconds(subject) > max(settings.seconds, _SLOW)
        self._fewest = 1 if slow else min(_FEWEST_EXAMPLES, settings.programs)
        self._shrinks = shrinks_of(settings.programs)

    def run(self) -> None:
        search = hypothesis.seed(self.settings.seed)(
            hypothesis.settings(
                max_examples=self.settings.programs,
                database=None,
                deadline=None,
                phases=(Phase.generate, Phase.shrink),
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
                print_blob=False,
                verbosity=hypothesis.Verbosity.quiet,
            )(hypothesis.given(st.data())(self._example))
        )
        try:
            search()
        except (_EnoughError, hypothesis.errors.Flaky):
            # An end by the clock looks flaky to Hypothesis, as does an environment whose episodes
            # have another length in the second run. The failure, if any, is in `best`.
            return
        except Exception:
            # The failure is in `best`, and `failed` runs it once more.
            if self.best is None and not self.out_of_time:
                raise

    def _example(self, data: st.DataObject) -> None:
        made = self._instances.calls - self._calls >= makes_of(self.subject)
        late = time.perf_counter() > self._deadline and self.examples >= self._fewest
        if (made and self.examples) or late or self._shrinks < 0:
            self.out_of_time = True
            raise _EnoughError
        self.examples += 1
        script = Script(
            self._instances, perturb(self.settings.seed), self._journal.begin(), new=self._new
        )
        play = Play(self.subject, script, data)
        failed: BaseException | None = None
        try:
            cast(Callable[[Play], None], self.check.function)(play)
            self.missing = self.missing or play.missing
            self.exercised = self.exercised or not play.missing
        except NotExercisedError as error:
            self.reason = str(error)
        except BaseException as error:
            failed = error
        finally:
            # Hypothesis may break a program off, which is no failure.
            script.close(whole=not isinstance(failed, Exception))
        if failed is not None:
            if failure := self._failure(failed, script):
                self._keep(failure, script, play)
            raise failed

    def _failure(self, error: BaseException, script: Script) -> Failure | None:
        """What an exception of a program says; None if it is Hypothesis' own."""
        lines = tuple(script.lines)
        match error:
            case ViolationError():
                return Failure("failed", str(error), "", lines, error.finding)
            case EnvFailureError() if error.error is self._instances.failure:
                return failure_to_make(self._instances.failed_in, error.error, error.trace)
            case EnvFailureError():
                got = said_by(error.error)
                finding = Finding(lines[-1], got, "no exception", script.steps)
                return Failure("errored", str(error), error.trace, lines, finding, error.error)
            case hypothesis.errors.HypothesisException():
                return None
            case Exception():
                return mistaken(self.check, error, lines)
        return None

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()

    def _keep(self, failure: Failure, script: Script, play: Play) -> None:
        """Keep a failure if it is the smallest.

        Raises:
            _UnlikeNewError: If it is the first, and new instances do not show it.
            _EnoughError: If there is no smaller one.
        """
        if self.first is None:
            if script.used and not repeats(self.subject, self.settings, failure):
                raise _UnlikeNewError
            self.first = failure
            self._deadline = time.perf_counter() + _SHRINK_SHARE * self.settings.seconds
        self._shrinks -= 1
        if self.best is None or failure.size < self.best.size:
            self.best = failure
        if failure.message.startswith(FACTORY_FAILS):
            self._instances.excused = True
            raise _EnoughError
        if not play.drew:
            raise _EnoughError
