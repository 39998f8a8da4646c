"""A child process in which checks run, and which may be lost; `Runner` does so in this one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import cloudpickle

from sb3compat.conformance.contract import Check
from sb3compat.conformance.findings import FactoryError
from sb3compat.conformance.run.child import START_SECONDS, Child, ChildFailureError, Tell
from sb3compat.conformance.run.clock import GRACE_TO_MAKE, Clock
from sb3compat.conformance.run.faults import Fault, shrunk
from sb3compat.conformance.run.report import Moment, Result
from sb3compat.conformance.run.reproduction import reproduction
from sb3compat.conformance.subject.examine import Given
from sb3compat.conformance.subject.scout import unscouted
from sb3compat.conformance.subject.settings import Settings
from sb3compat.conformance.subject.subject import Subject

# A statement may take so many seconds before it counts as hung. A slow environment gets the time of
# so many constructions, resets and steps on top.
_LEAST_LIMIT = 30.0
_LIMIT_MAKES, _LIMIT_STEPS = 10, 1000
# A check, of many programs, may take so many times as long.
_LIMIT_CHECK = 10
# Once the environment has hung, nobody waits for so long again.
_KNOWN_TO_HANG = 4.0
# Statements that hang when the time of the run is over have hung for so long at least.
_SURELY_HUNG = 5.0
# If the time of the run is limited, each look at the environment before the checks has this part.
_SCOUTING = 1 / 3
# The search for endings ends by itself, unless each step is close to hanging.
_MOST_SCOUTING = 600.0


class ChildProcess:
    """Runs checks in a child process, and starts another one when a check hangs or kills it.

    Args:
        clock: The time of the run.
        tell: Called with what is going on.
    """

    def __init__(self, clock: Clock, tell: Tell = lambda text: None) -> None:
        self._clock, self._tell = clock, tell
        self._subject: Subject
        self._child: Child | None = Child(tell)
        # Whether it knows the subject, and nothing is asked of it.
        self._idle = False
        # The fault of the last check, and those that were told, with the checks that told them.
        self._last: Fault | None = None
        self._told: dict[tuple[str, str, str], str] = {}

    def examine(self, given: Given, seconds: float) -> Subject:
        """Examine the environment, and search its endings for so many seconds at most.

        A hang or a crash after the environment was made is left for the checks to find.

        Raises:
            FactoryError: If the environment cannot be made, or has no vector interface.
        """
        try:
            cloudpickle.dumps(given)
        except Exception as error:
            raise FactoryError(
                "Expected a factory that cloudpickle can carry to another process, where the "
                f"checks run, but it raised {type(error).__name__}: {error}. Or run them in this "
                "one: isolate=False, on the command line --no-isolate."
            ) from error
        self._look_at(given, forks=True)
        self._explore(given, seconds)
        return self._subject

    def _look_at(self, given: Given, *, forks: bool) -> None:
        """Make the environment, and collect the facts that take no call of its own."""
        assert self._child is not None
        self._tell("making it")
        try:
            limit = self._clock.within(_LEAST_LIMIT + START_SECONDS, GRACE_TO_MAKE)
            self._subject = self._child.ask("look_at", given, forks, seconds=limit)
        except ChildFailureError as error:
            where = f" It was here, the innermost call first:\n{error.stack}" if error.stack else ""
            raise FactoryError(
                f"Expected an environment that can be made, but: {error}.{where}"
            ) from None

    def _explore(self, given: Given, seconds: float) -> None:
        """Find out by trying what the environment can do, and search its endings."""
        doing = "making more instances, if that takes long"
        self._tell(doing)
        try:
            self._subject = self._ask("prepare", seconds=self._patience())
            doing = "finding out what it can do"
            self._tell(doing)
            self._subject = self._ask("try_out", seconds=self._patience())
            self._release()
            doing = "looking for the end of an episode"
            limit, silence = self._clock.within(_MOST_SCOUTING), self._patience()
            self._subject = self._ask("scout", seconds, seconds=limit, silence=silence)
        except ChildFailureError as error:
            self._end()
            if self._subject.forked:  # it may be a fault of a fork
                self._child = Child(self._tell)
                self._look_at(given, forks=False)
                self._explore(given, seconds)
            else:
                self._subject = unscouted(self._subject, f"{doing}: {error}")

    def _release(self) -> None:
        self._tell("closing it")
        try:
            self._ask("release", seconds=self._patience())
        except ChildFailureError as error:
            if self._subject.forked:
                raise
            self._end()  # a check reports it
            self._subject = replace(self._subject, closes=False, lost=f"closing it: {error}")

    def _patience(self) -> float:
        """How long to wait for what is found out before the checks."""
        least = _LEAST_LIMIT + _LIMIT_MAKES * self._subject.make_seconds
        return self._clock.within(min(least, max(_SCOUTING * self._clock.limit, 1.0)))

    def run(self, check: Check, settings: Settings) -> Result:
        """Run a check; if the child hangs or dies, the result has the program that it ran."""
        begin = time.perf_counter()
        self._last = None
        silence = self._silence()
        if "sb3" in check.needs:  # it may have to import PyTorch
            silence = max(silence, _LEAST_LIMIT)
        limit = self._clock.within(_LIMIT_CHECK * silence)
        try:
            settings = self._living().journaling(settings)
            found: Result = self._ask("run", check, settings, seconds=limit, silence=silence)
            return found
        except ChildFailureError as error:
            self._end()
            if self._subject.forked:  # nothing is said about an environment for a fault of a fork
                return self.run(check, settings)
            result = self._lost(check, settings, error)
            return replace(result, seconds=time.perf_counter() - begin)

    def _silence(self) -> float:
        """How long a statement may take; what is lost in a fork is tried again without one."""
        subject = self._subject
        slow = (
            _LIMIT_MAKES * (subject.make_seconds + subject.reset_seconds)
            + _LIMIT_STEPS * subject.step_seconds
        )
        known = subject.forked or any(kind == "timeout" for kind, *_ in self._told)
        least = _KNOWN_TO_HANG if known else _LEAST_LIMIT
        return least + slow

    def _lost(self, check: Check, settings: Settings, error: ChildFailureError) -> Result:
        """The result of a check in which the child was lost."""
        fault, lines = Fault.of(error), error.lines
        if lines and lines[-1].endswith(".close()"):
            self._subject = replace(self._subject, closes=False)  # nobody waits for that again
        if not error.cause and self._is_late(error):
            message = f"no time was left: it was in {lines[-1]}" if lines else "no time was left"
            return Result.of(check, "not_exercised", message=message)
        if fault.kind in self._told:
            first = self._told[fault.kind]
            message = f"{'dies' if error.cause else 'hangs'} as in {first}"
            return Result.of(check, "skipped", message=message, cause=first)
        self._last = fault
        lines = shrunk(lines, lambda fewer: self._repeats(fault, fewer, settings))
        return replace(
            Result.of(check, "errored", message=fault.message),
            reproduction=reproduction(check, self._subject, settings, lines) if lines else "",
            trace=fault.stack,
            timeline=self._before(lines, settings),
        )

    def _is_late(self, error: ChildFailureError) -> bool:
        """Whether the run was over before it was certain that a statement hangs."""
        surely = max(_SURELY_HUNG, 5 * (self._subject.make_seconds + self._subject.step_seconds))
        imports = not error.lines or error.lines[-1].startswith(("from ", "import "))
        return self._clock.left <= 0 and (error.silent < surely or imports)

    @property
    def lost(self) -> bool:
        """Whether the process of the last check hung or died."""
        return self._last is not None

    def remember(self, result: Result) -> None:
        """Take note of the last hang or crash, if its result stands."""
        if self._last is not None and result.status == "errored":
            self._told.setdefault(self._last.kind, result.check_id)

    def close(self) -> None:
        """Have the child close the instances that it keeps, and end it."""
        try:
            if self._idle and (self._subject.shared or self._subject.forked):
                with suppress(ChildFailureError):
                    self._ask("close", seconds=_KNOWN_TO_HANG)
        finally:
            self._end()

    def _end(self) -> None:
        """End the child."""
        self._idle = False
        if self._child is not None:
            self._child.close()
            self._child = None

    def _living(self) -> Child:
        """A child that knows the subject."""
        if self._child is None:
            self._subject = replace(self._subject, forked=False)
            self._child = Child(self._tell)
            self._child.ask("adopt", self._subject, seconds=self._clock.within(START_SECONDS))
        return self._child

    def _ask(self, method: str, *arguments: object, **limits: float) -> Any:
        """What a method of the `Runner` returns in a child that knows the subject."""
        child, self._idle = self._living(), False
        found = child.ask(method, *arguments, **limits)
        self._idle = True
        return found

    def _timeline(
        self, lines: Sequence[str], settings: Settings, silence: float
    ) -> tuple[Moment, ...]:
        """The outcomes of the last steps of a program."""
        settings = self._living().journaling(settings)
        limit = self._clock.within(_LEAST_LIMIT)
        found: tuple[Moment, ...] = self._ask(
            "timeline", list(lines), settings, seconds=limit, silence=min(silence, limit)
        )
        return found

    def _repeats(self, fault: Fault, lines: Sequence[str], settings: Settings) -> bool:
        """Whether this program ends the child in the same way."""
        if self._clock.left < _LIMIT_CHECK:
            return False
        try:
            silence = min(_KNOWN_TO_HANG + self._subject.make_seconds, self._silence())
            self._timeline(lines, settings, silence)
        except ChildFailureError as error:
            self._end()
            return Fault.of(error).kind == fault.kind
        return False

    def _before(self, lines: Sequence[str], settings: Settings) -> tuple[Moment, ...]:
        """The timeline up to the statement that hung or killed the child."""
        try:
            if lines and self._clock.left > 0:
                return self._timeline(lines[:-1], settings, _LEAST_LIMIT)
        except ChildFailureError:
            self._end()
        return ()
