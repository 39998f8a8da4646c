"""The checks of one environment, in an order that respects which comes after which."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.contract import Check
from sb3compat.conformance.findings import Family, family_name
from sb3compat.conformance.program.source import factory_source
from sb3compat.conformance.program.types import Factory
from sb3compat.conformance.run.fresh import confirmed
from sb3compat.conformance.run.known import known_failures
from sb3compat.conformance.run.options import Options, OptionsError
from sb3compat.conformance.run.places import ChildProcess, Place, ThisProcess
from sb3compat.conformance.run.report import Report, Result
from sb3compat.conformance.run.settings import Settings
from sb3compat.conformance.run.versions import versions
from sb3compat.conformance.subject.subject import Subject

MAX_SECONDS = 50.0
# The share of the time for the search for endings.
_SCOUTING = 1 / 5
# So long after the time that the user allowed, no more checks begin.
_LATE = 30.0
# The most that one check of a quick environment gets, even if few are chosen: it needs no more, and
# the limit after which it counts as hung depends on it.
_MOST_SHARE = 5.0
# What two programs of a check need, if construction or steps are slow: instances and episodes.
_MAKES, _EPISODES, _STEPS_WITHOUT_END = 4, 4, 50
# The time limit of a script: to import all it needs, and for so many constructions.
_SCRIPT_SECONDS, _LIMIT_MAKES = 30.0, 10
_IN_SPACE = ("reset_obs_in_space", "step_obs_in_space", "terminal_observation_in_space")


class Session:
    """The checks of one environment, run one by one as they are asked for.

    Args:
        factory: Makes the environment.
        options: How to run them.
        family: Its interface; None to find out.
        target: Its name in the report.

    Attributes:
        options: How to run them.
        subject: Facts about the environment.
        applicable: The checks that apply to it.
        checks: The applicable checks that the options ask for.

    Raises:
        FactoryError: If the factory makes no vector environment. An exception of the factory
            itself passes through.
        OptionsError: If an option names a check or a capability that does not exist.
    """

    def __init__(
        self,
        factory: Factory,
        *,
        options: Options,
        family: Family | None = None,
        target: str = "",
    ) -> None:
        options.check_names()
        self._begin = time.perf_counter()
        self.options = options
        self._target = target or getattr(factory, "__qualname__", repr(factory))
        self._place: Place = ChildProcess(options) if options.isolate else ThisProcess(options)
        try:
            seconds = _SCOUTING * (options.max_seconds or MAX_SECONDS)
            self.subject = self._place.examine(factory, family, seconds)
            self._known = known_failures(self.subject) if options.known_upstream else {}
        except BaseException:
            self.close()
            raise
        self.applicable = checks_of(self.subject.family, self.subject.mode)
        self._all = {check.id: check for check in self.applicable}
        self.checks = [check for check in self.applicable if options.asks_for(check.id)]
        self._notes = self._left_out()
        self._needed = _needed(self.subject, len(self.checks))
        self._settings = Settings(
            seed=options.seed,
            seconds=(options.max_seconds or self._needed) / max(len(self.checks), 1),
            make_env=options.make_env or factory_source(factory, options.reference),
        )
        self._results: dict[str, Result] = {}
        # The checks that an earlier failure made pointless, and whether that was about bounds only.
        self._lost: dict[str, bool] = {}
        # The failed check behind each of them.
        self._causes: dict[str, str] = {}

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process that runs the checks."""
        self._place.close()

    def result(self, check: Check) -> Result:
        """The result of a check; the checks that it comes after run first."""
        if check.id not in self._results:
            result = self._blocked(check) or self._late(check) or self._run(check)
            self._results[check.id] = _with_expectation(result, self.options, self._known)
        return self._results[check.id]

    def _run(self, check: Check) -> Result:
        """Run a check; a failure counts only if its script shows it in a Python of its own."""
        result = self._place.run(check, self._settings)
        return confirmed(result, _SCRIPT_SECONDS + _LIMIT_MAKES * self.subject.make_seconds)

    def cause(self, check: Check) -> Result | None:
        """The failure for which a check was skipped; None if it was not skipped for one."""
        name = self._causes.get(check.id)
        return None if name is None else self._results[name]

    def report(self, results: Iterable[Result]) -> Report:
        """The report of these results, and of the failures for which some were skipped."""
        chosen = {result.check_id: result for result in results}
        for name in [name for name in chosen if name in self._causes]:
            chosen[self._causes[name]] = self._results[self._causes[name]]
        ordered = [chosen[check.id] for check in self.applicable if check.id in chosen]
        return Report(
            target=self._target,
            family=self.subject.family,
            mode=self.subject.mode,
            num_envs=self.subject.num_envs,
            seed=self.options.seed,
            results=tuple(ordered),
            strict=self.options.strict,
            versions=versions(),
            notes=(*self.subject.notes, *self._notes),
            seconds=time.perf_counter() - self._begin,
        )

    def _left_out(self) -> tuple[str, ...]:
        """Notes on checks that were left out, or asked for and do not apply to this environment."""
        about = family_name(self.subject.family)
        if self.subject.mode:
            about += f" in autoreset mode {self.subject.mode}"
        options = self.options
        if not self.checks:
            self.close()
            got = ", ".join(options.only) or "none"
            less = f" without {', '.join(options.skip)} in `skip`" if options.skip else ""
            raise OptionsError(f"Expected checks of {about} in `only`, got {got}{less}.")
        others = [name for name in options.only if not fnmatch.filter(self._all, name)]
        left_out = [check.id for check in self.applicable if options.leaves_out(check.id)]
        notes = [f"{name} is no check of {about}" for name in others]
        return (*notes, *([f"left out, as asked: {', '.join(left_out)}"] if left_out else []))

    def _blocked(self, check: Check) -> Result | None:
        """The result of a check that is pointless because one before it failed, or None.

        A check that was skipped for a missing capability, or was not exercised, blocks nothing.
        """
        if self.subject.missing(check.needs):
            return None  # the check is skipped for that
        for name in check.after:
            before = self._all.get(name)
            if before is None or self.options.leaves_out(name):
                continue
            result = self.result(before)
            failed = result.status in ("failed", "errored", "xfailed")
            by_bounds = self._lost.get(name, result.finding is not None and result.finding.bounds)
            # Only the checks of bounds would repeat a failure about bounds.
            if (failed or name in self._lost) and (not by_bounds or check.id in _IN_SPACE):
                self._lost[check.id] = by_bounds
                self._causes[check.id] = self._causes.get(name, name)
                return Result.of(check, "skipped", message=f"comes after {name}, which has failed")
        return None

    def _late(self, check: Check) -> Result | None:
        """The result of a check for which no time is left, or None."""
        limit = self.options.max_seconds
        if limit is None or time.perf_counter() - self._begin < 2 * limit + _LATE:
            return None
        if self.subject.missing(check.needs):
            return None  # the check is skipped for that, at once
        message = f"no time was left: all checks take about {self._needed:.0f} s, with max_seconds"
        return Result.of(check, "not_exercised", message=f"{message}={limit:g}")


def _needed(subject: Subject, checks: int) -> float:
    """The seconds that the checks need at the pace of this environment."""
    steps = subject.endings[0].steps if subject.endings else _STEPS_WITHOUT_END
    each = _MAKES * subject.make_seconds + _EPISODES * steps * subject.step_seconds
    return max(min(MAX_SECONDS, checks * _MOST_SHARE), checks * each)


def _with_expectation(result: Result, options: Options, known: Mapping[str, str]) -> Result:
    """The result of a check that was expected to fail, by the user or as known upstream."""
    reason = options.expected_failures.get(result.check_id)
    if reason is None:
        if result.check_id not in known or result.status not in ("failed", "errored"):
            return result
        reason = f"known upstream: {known[result.check_id]}"
    if result.status in ("failed", "errored"):
        return replace(result, status="xfailed", message=f"{result.message}; expected: {reason}")
    if result.status == "passed":
        return replace(result, status="xpassed", message=f"expected to fail: {reason}")
    return result
