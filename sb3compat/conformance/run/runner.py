"""Run a check: as many programs as the time allows, and the smallest of those that fail."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
from sb3compat.conformance.program.plain import Plain, without_helpers
from sb3compat.conformance.program.script import Script
from sb3compat.conformance.program.source import PLACEHOLDER
from sb3compat.conformance.program.trace import trace_of
from sb3compat.conformance.run.report import Moment, Result, Status
from sb3compat.conformance.run.timeline import WATCH, Timeline, watched
from sb3compat.conformance.subject.subject import Subject

_MOST_EXAMPLES = 25
_FEWEST_EXAMPLES = 2
# One program alone, if it takes so many seconds and is all that there is time for.
_SLOW = 1.0
_OWN = "This is a mistake in sb3compat: please report it."
# A minimal script is worth some time, but not all.
_SHRINK_SHARE = 2.0


class _EnoughError(BaseException):
    """Ends Hypothesis' search: no `Exception`, as it would take that for a failure."""


@dataclass(frozen=True)
class _Failure:
    status: Status
    message: str
    trace: str
    lines: tuple[str, ...]
    finding: Finding | None
    # The check itself has failed, not the environment.
    own: bool = False

    @property
    def size(self) -> tuple[int, int, int]:
        violated = 0 if self.status == "failed" else 1
        return violated, len(self.lines), sum(map(len, self.lines))


@dataclass(frozen=True)
class Settings:
    """How to run checks.

    Attributes:
        seed: Of the programs that are drawn.
        seconds: For one check, without those that it takes to shrink a failure.
        make_env: Source that defines `make_env` in reproductions.
        journal: A file where the statements of the program at work are written down, for those
            who outlive it; none where it is empty.
    """

    seed: int = 0
    seconds: float = 1.0
    make_env: str = PLACEHOLDER
    journal: str = ""


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
    spent: dict[str, Any] = {"seconds": seconds, "examples": search.examples}
    if search.best is None:
        if search.exercised:
            return Result.of(check, "passed", **spent)
        why = "no episode ended" if not subject.endings else "it did not come to that"
        why = search.reason or why
        return Result.of(check, "not_exercised", message=why, **spent)
    return _failed(check, subject, settings, search.best, spent)


class _Search:
    """Hypothesis draws programs; the smallest that fails is kept."""

    def __init__(self, check: Check, subject: Subject, settings: Settings) -> None:
        self.check, self.subject, self.settings = check, subject, settings
        self.best: _Failure | None = None
        self.exercised = False
        self.reason = ""
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
            # last for another time when they are played again. What was found is in `best`.
            return
        except Exception:
            # It is kept in `best`; whether it fails each time, `_failed` finds out.
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
            self.check.function(Play(self.subject, script, data))
            self.exercised = True
        except NotExercisedError as error:
            self.reason = str(error)
            return
        except ViolationError as error:
            self._keep(_Failure("failed", str(error), "", tuple(script.lines), error.finding))
            raise
        except EnvFailureError as error:
            got = said_by(error.error)
            finding = Finding(script.lines[-1], got, "no exception", script.steps)
            lines = tuple(script.lines)
            self._keep(_Failure("errored", str(error), error.trace, lines, finding))
            raise
        except hypothesis.errors.HypothesisException:
            raise
        except Exception as error:
            message = f"the check itself raised {said_by(error)}. {_OWN}"
            lines = tuple(script.lines)
            self._keep(_Failure("errored", message, trace_of(error), lines, None, own=True))
            raise
        finally:
            script.close()

    def close(self) -> None:
        """Let go of the journal."""
        self._journal.close()

    def _keep(self, failure: _Failure) -> None:
        if self.best is None:
            self._deadline = time.perf_counter() + _SHRINK_SHARE * self.settings.seconds
        if self.best is None or failure.size < self.best.size:
            self.best = failure


_constructions = 0


def perturb(seed: int) -> Callable[[], None]:
    """Another state of the global random generators for each construction.

    Hypothesis sets them to the same state before each example, so that an environment which draws
    from them would look as if it heeded its seed.
    """

    def reseed() -> None:
        global _constructions
        _constructions += 1
        random.seed(1_000_003 * seed + _constructions)
        np.random.seed((1_000_003 * seed + _constructions) % 2**32)

    return reseed


def _failed(
    check: Check, subject: Subject, settings: Settings, failure: _Failure, spent: dict[str, Any]
) -> Result:
    row = failure.finding.row if failure.finding else None
    again, timeline = _replay(subject, settings, failure.lines, row)
    last = again or Plain(failure.lines[-1])
    message, finding = last.told(failure.message), failure.finding
    if finding:
        what, should = last.told(finding.what), last.told(finding.should)
        finding = replace(finding, what=what, should=should)
    if not again and not failure.own:
        message += " (not every time: the same program has passed when it was run again)"
    return Result.of(
        check,
        failure.status,
        message=message,
        reproduction=reproduction(check, subject, settings, [*failure.lines[:-1], last.line]),
        trace=failure.trace,
        timeline=timeline.moments,
        finding=finding,
        **spent,
    )


def reproduction(check: Check, subject: Subject, settings: Settings, lines: Iterable[str]) -> str:
    """The standalone script that consists of these statements."""
    script = Script(subject.factory)
    script.lines = list(lines)
    title = f"{check.id}: {check.contract}\n\n{check.source}\n"
    return script.source(settings.make_env, title, guarded=subject.workers)


def timeline_of(subject: Subject, settings: Settings, lines: Sequence[str]) -> tuple[Moment, ...]:
    """What came of the last steps of a program."""
    return _replay(subject, settings, lines)[1].moments


def _replay(
    subject: Subject, settings: Settings, lines: Sequence[str], row: int | None = None
) -> tuple[Plain | None, Timeline]:
    """Run a script once more: its last statement if it fails again, and what came of the steps."""
    script = Script(subject.factory, subject.reference, perturb(settings.seed))
    timeline = Timeline(subject, row)
    script.namespace[WATCH] = timeline.watch
    survived = 0
    try:
        for line in lines:
            script.run(watched(line))
            timeline.note(line, script)
            survived += 1
    except EnvFailureError:
        # An environment that is not deterministic may fail before it comes to the assertion.
        at_the_end = survived == len(lines) - 1
        return without_helpers(line, script.value) if at_the_end else Plain(lines[-1]), timeline
    finally:
        script.close()
    return None, timeline
