"""Run a check: as many programs as the time allows, and the smallest one that fails."""

from __future__ import annotations

import time
from dataclasses import replace

import hypothesis
import numpy as np
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
from sb3compat.conformance.play import Play
from sb3compat.conformance.program.journal import Journal
from sb3compat.conformance.program.script import Script
from sb3compat.conformance.program.trace import trace_of
from sb3compat.conformance.run.perturb import perturb
from sb3compat.conformance.run.report import Result
from sb3compat.conformance.run.reproduction import OWN_MISTAKE, Failure, failed
from sb3compat.conformance.run.settings import Settings
from sb3compat.conformance.subject.subject import Subject

_MOST_EXAMPLES = 25
_FEWEST_EXAMPLES = 2
# A single program is enough if it takes so many seconds and there is no time for two.
_SLOW = 1.0
# The time for shrinking a failure, as a multiple of the time for the search.
_SHRINK_SHARE = 2.0


class _EnoughError(BaseException):
    """Ends the search. Hypothesis would take an `Exception` for a failure."""


def run_check(check: Check, subject: Subject, settings: Settings) -> Result:
    """Run one check in this process."""
    missing = subject.missing(check.needs)
    if missing:
        return Result.of(check, "skipped", message=f"needs the capability {missing[0]!r}")
    begin = time.perf_counter()
    search = _Search(check, subject, settings)
    try:
        search.run()
    finally:
        search.close()
    seconds = time.perf_counter() - begin
    if search.best is not None:
        result = failed(check, subject, settings, search.best)
    elif search.exercised:
        result = Result.of(check, "passed")
    elif search.missing:
        result = Result.of(check, "partly_exercised", message=search.missing)
    else:
        why = search.reason or ("no program reached it" if subject.endings else "no episode ended")
        result = Result.of(check, "not_exercised", message=why)
    return replace(result, seconds=seconds, examples=search.examples)


class _Search:
    """Hypothesis draws programs; the smallest that fails is kept."""

    def __init__(self, check: Check, subject: Subject, settings: Settings) -> None:
        self.check, self.subject, self.settings = check, subject, settings
        self.best: Failure | None = None
        self.exercised = False
        self.reason = ""
        self.missing = ""
        self.examples = 0
        self._journal = Journal(settings.journal)
        self.out_of_time = False
        self._deadline = time.perf_counter() + settings.seconds
        cost = subject.make_seconds + 30 * subject.step_seconds + 1e-4
        slow = cost > max(settings.seconds, _SLOW)
        self._fewest = 1 if slow else _FEWEST_EXAMPLES
        self._most = int(np.clip(settings.seconds / cost, self._fewest, _MOST_EXAMPLES))

    def run(self) -> None:
        search = hypothesis.seed(self.settings.seed)(
            hypothesis.settings(
                max_examples=self._most,
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
        if self.examples >= self._fewest and time.perf_counter() > self._deadline:
            self.out_of_time = True
            raise _EnoughError
        self.examples += 1
        script = Script(
            self.subject.factory,
            self.subject.reference,
            perturb(self.settings.seed),
            self._journal.begin(),
            alone=self.subject.alone,
        )
        try:
            play = Play(self.subject, script, data)
            self.check.function(play)
            self.missing = self.missing or play.missing
            self.exercised = self.exercised or not play.missing
        except NotExercisedError as error:
            self.reason = str(error)
            return
        except ViolationError as error:
            self._keep(Failure("failed", str(error), "", tuple(script.lines), error.finding))
            raise
        except EnvFailureError as error:
            got = said_by(error.error)
            finding = Finding(script.lines[-1], got, "no exception", script.steps)
            lines = tuple(script.lines)
            self._keep(Failure("errored", str(error), error.trace, lines, finding))
            raise
        except hypothesis.errors.HypothesisException:
            raise
        except Exception as error:
            message = f"the check itself raised {said_by(error)}. {OWN_MISTAKE}"
            lines = tuple(script.lines)
            self._keep(Failure("errored", message, trace_of(error), lines, None, own=True))
            raise
        finally:
            script.close()

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()

    def _keep(self, failure: Failure) -> None:
        if self.best is None:
            self._deadline = time.perf_counter() + _SHRINK_SHARE * self.settings.seconds
        if self.best is None or failure.size < self.best.size:
            self.best = failure
