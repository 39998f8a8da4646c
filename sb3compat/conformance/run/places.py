"""The two places where checks run: this process, and a child process that may be lost."""

from __future__ import annotations

import time
from typing import Protocol

from sb3compat.conformance.contract import Check
from sb3compat.conformance.findings import FactoryError, Family
from sb3compat.conformance.program.types import Factory
from sb3compat.conformance.run.child import Child, ChildFailureError
from sb3compat.conformance.run.options import Options
from sb3compat.conformance.run.report import Moment, Result
from sb3compat.conformance.run.reproduction import reproduction
from sb3compat.conformance.run.search import run_check
from sb3compat.conformance.run.settings import Settings
from sb3compat.conformance.subject.examine import Given, examine
from sb3compat.conformance.subject.scout import unscouted
from sb3compat.conformance.subject.subject import Subject

# A check may take so many seconds, and so many times its share, before it counts as hung. A slow
# environment gets the time of so many constructions and steps on top.
_LEAST_LIMIT = 30.0
_LIMIT = 5.0
_LIMIT_MAKES, _LIMIT_STEPS = 10, 1000
# After each hang the limit is halved, down to this share: an environment that hangs in many checks
# must not take hours.
_LEAST_PATIENCE = 1 / 3


class Place(Protocol):
    """Where checks run."""

    def examine(self, factory: Factory, family: Family | None, seconds: float) -> Subject:
        """Examine the environment, and search its endings for so many seconds."""

    def run(self, check: Check, settings: Settings) -> Result:
        """Run a check on the environment that was examined."""

    def close(self) -> None:
        """End the processes that belong to this place."""


def given_by(options: Options, factory: Factory, family: Family | None) -> Given:
    """The arguments of `examine` that these options contain."""
    return {
        "factory": factory,
        "family": family,
        "declared": dict(options.capabilities),
        "options": options.options,
        "reference": options.reference,
    }


class ThisProcess:
    """Runs checks in this process, where a debugger sees them."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._subject: Subject | None = None

    def examine(self, factory: Factory, family: Family | None, seconds: float) -> Subject:
        """Examine the environment, and search its endings for so many seconds."""
        given = given_by(self._options, factory, family)
        self._subject = examine(**given, seconds=seconds)
        return self._subject

    def run(self, check: Check, settings: Settings) -> Result:
        """Run a check."""
        assert self._subject is not None
        return run_check(check, self._subject, settings)

    def close(self) -> None:
        """Do nothing: there is no other process."""


class ChildProcess:
    """Runs checks in a child process, and starts another one when a check hangs or kills it."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._subject: Subject | None = None
        self._child: Child | None = Child()
        self._patience = 1.0

    def examine(self, factory: Factory, family: Family | None, seconds: float) -> Subject:
        """Examine the environment, and search its endings for so many seconds.

        Raises:
            FactoryError: If the environment cannot be made and closed, or has no vector interface.
        """
        assert self._child is not None
        given = given_by(self._options, factory, family)
        try:
            made = self._child.examine(given, _LEAST_LIMIT)
        except ChildFailureError as error:
            where = f" It was here, the innermost call first:\n{error.stack}" if error.stack else ""
            raise FactoryError(
                f"Expected an environment that can be made and closed, but: {error}.{where}"
            ) from None
        try:
            self._subject = self._child.scout(seconds, seconds + _LEAST_LIMIT)
        except ChildFailureError as error:
            self.close()
            self._subject = unscouted(made, f"Looking for the end of an episode: {error}")
        return self._subject

    def run(self, check: Check, settings: Settings) -> Result:
        """Run a check; if the child hangs or dies, the result has the program that it ran."""
        assert self._subject is not None
        slow = _LIMIT_MAKES * self._subject.make_seconds + _LIMIT_STEPS * self._subject.step_seconds
        limit = (_LEAST_LIMIT + _LIMIT * settings.seconds + slow) * self._patience
        begin = time.perf_counter()
        try:
            return self._living(self._subject).run(check, settings, limit)
        except ChildFailureError as error:
            seconds = time.perf_counter() - begin
            lines = self._child.last_program() if self._child else []
            self.close()
            self._patience = max(self._patience / 2, _LEAST_PATIENCE)
            script = reproduction(check, self._subject, settings, lines) if lines else ""
            return Result.of(
                check,
                "errored",
                message=str(error),
                reproduction=script,
                trace=error.stack,
                timeline=self._before(self._subject, lines, settings),
                seconds=seconds,
            )

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def _living(self, subject: Subject) -> Child:
        """A child that knows the subject."""
        if self._child is None:
            self._child = Child()
            self._child.adopt(subject)
        return self._child

    def _before(self, subject: Subject, lines: list[str], settings: Settings) -> tuple[Moment, ...]:
        """The timeline up to the statement that hung or killed the child."""
        try:
            if lines:
                return self._living(subject).timeline(lines[:-1], settings, _LEAST_LIMIT)
        except ChildFailureError:
            self.close()
        return ()
