"""Run a check: as many programs as the time allows, and the smallest of those that fail."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from sb3compat.conformance.contract import (
    Check,
    EnvFailureError,
    NotExercisedError,
    ViolationError,
    short,
)
from sb3compat.conformance.play import Play
from sb3compat.conformance.report import Moment, Result, Status
from sb3compat.conformance.script import Script
from sb3compat.conformance.subject import Subject

_MOST_EXAMPLES = 25
_FEWEST_EXAMPLES = 2
# A minimal script is worth some time, but not all.
_SHRINK_SHARE = 2.0
_SHOWN_STEPS = 5


class _EnoughError(BaseException):
    """Ends Hypothesis' search: no `Exception`, as it would take that for a failure."""


@dataclass(frozen=True)
class _Failure:
    status: Status
    message: str
    trace: str
    lines: tuple[str, ...]

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
    """

    seed: int = 0
    seconds: float = 1.0
    make_env: str = "make_env = ...  # your factory"


def run_check(check: Check, subject: Subject, settings: Settings) -> Result:
    """Run one check in this process."""
    missing = subject.missing(check.needs)
    if missing:
        return Result.of(check, "skipped", message=f"needs the capability {missing[0]!r}")
    begin = time.perf_counter()
    search = _Search(check, subject, settings)
    search.run()
    seconds = time.perf_counter() - begin
    spent: dict[str, Any] = {"seconds": seconds, "examples": search.examples}
    if search.best is None:
        if search.exercised:
            return Result.of(check, "passed", **spent)
        why = "no episode ended" if not subject.endings else "it did not come to that"
        return Result.of(check, "not_exercised", message=why, **spent)
    return _failed(check, subject, settings, search.best, spent)


class _Search:
    """Hypothesis draws programs; the smallest that fails is kept."""

    def __init__(self, check: Check, subject: Subject, settings: Settings) -> None:
        self.check, self.subject, self.settings = check, subject, settings
        self.best: _Failure | None = None
        self.exercised = False
        self.examples = 0
        self.out_of_time = False
        self._deadline = time.perf_counter() + settings.seconds

    def run(self) -> None:
        cost = self.subject.make_seconds + 30 * self.subject.step_seconds + 1e-4
        most = int(np.clip(self.settings.seconds / cost, _FEWEST_EXAMPLES, _MOST_EXAMPLES))
        search = hypothesis.seed(self.settings.seed)(
            hypothesis.settings(
                max_examples=most,
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
        except _EnoughError:
            return
        except Exception:
            # It is kept in `best`. Where it fails now and then only, Hypothesis complains of
            # flakiness, and `_failed` finds out. It does so, too, when the time is up in a program
            # that it has run before.
            if self.best is None and not self.out_of_time:
                raise

    def _example(self, data: st.DataObject) -> None:
        if self.examples >= _FEWEST_EXAMPLES and time.perf_counter() > self._deadline:
            self.out_of_time = True
            raise _EnoughError
        self.examples += 1
        script = Script(self.subject.factory, self.subject.reference, perturb(self.settings.seed))
        try:
            self.check.function(Play(self.subject, script, data))
            self.exercised = True
        except NotExercisedError:
            return
        except ViolationError as error:
            self._keep(_Failure("failed", str(error), "", tuple(script.lines)))
            raise
        except EnvFailureError as error:
            self._keep(_Failure("errored", str(error), error.trace, tuple(script.lines)))
            raise
        finally:
            script.close()

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
    again, timeline = _replay(subject, settings, failure.lines)
    message = failure.message
    if not again:
        message += " (not every time: the same program has passed when it was run again)"
    script = Script(subject.factory)
    script.lines = list(failure.lines)
    title = f"{check.id}: {check.contract}\n\n{check.source}\n"
    return Result.of(
        check,
        failure.status,
        message=message,
        reproduction=script.source(settings.make_env, title),
        trace=failure.trace,
        timeline=timeline,
        **spent,
    )


def _replay(
    subject: Subject, settings: Settings, lines: tuple[str, ...]
) -> tuple[bool, tuple[Moment, ...]]:
    """Run the script once more: whether it fails again, and what its last steps were."""
    script = Script(subject.factory, subject.reference, perturb(settings.seed))
    moments: list[list[Moment]] = []
    steps = 0
    try:
        for line in lines:
            script.run(line)
            if "= env.step(" in line:
                steps += 1
                moments.append(_moments(subject, script, steps))
    except EnvFailureError:
        return True, _last(moments)
    finally:
        script.close()
    return False, _last(moments)


def _last(moments: list[list[Moment]]) -> tuple[Moment, ...]:
    return tuple(moment for step in moments[-_SHOWN_STEPS:] for moment in step)


def _moments(subject: Subject, script: Script, step: int) -> list[Moment]:
    """What each row looks like after a step."""

    def text(expression: str) -> str:
        try:
            return short(script.value(expression), 60)
        except Exception:
            return "?"

    names = ["dones"] if subject.family == "vec_env" else ["terminations", "truncations"]
    return [
        Moment(
            step,
            i,
            observation=text(f"row(obs, {i})"),
            reward=text(f"rewards[{i}]"),
            flags=", ".join(f"{name[:-1]}={text(f'{name}[{i}]')}" for name in names),
            note=text(f"infos[{i}]") if subject.family == "vec_env" else "",
        )
        for i in range(subject.num_envs)
    ]
