"""The checks of one environment, in an order that respects which comes after which."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from threading import Event

from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.contract import Check
from sb3compat.conformance.findings import Family, family_name
from sb3compat.conformance.program.source import factory_source
from sb3compat.conformance.program.types import Factory
from sb3compat.conformance.run.checking import lacking
from sb3compat.conformance.run.child import Tell
from sb3compat.conformance.run.clock import Clock
from sb3compat.conformance.run.fresh import confirmed
from sb3compat.conformance.run.known import known_failures
from sb3compat.conformance.run.options import Options, OptionsError
from sb3compat.conformance.run.places import ChildProcess
from sb3compat.conformance.run.report import Report, Result
from sb3compat.conformance.run.reproduction import FACTORY_FAILS
from sb3compat.conformance.run.runner import Runner
from sb3compat.conformance.run.versions import versions
from sb3compat.conformance.subject.capabilities import CAPABILITIES, PROBED
from sb3compat.conformance.subject.examine import Given
from sb3compat.conformance.subject.pace import estimate, programs_of
from sb3compat.conformance.subject.settings import Settings
from sb3compat.conformance.subject.subject import Subject

# The share of the time that the user allows for the search for endings.
_SCOUTING = 1 / 5
# The time limit of a script: to import all it needs, and for so many constructions. One that is
# expected to hang is not waited for that long.
_SCRIPT_SECONDS, _HANG_SECONDS, _LIMIT_MAKES = 30.0, 10.0, 10
# So many scripts run at once.
_MOST_SCRIPTS = 4
# In less time no script can be run.
_LEAST_SECONDS = 1.0
_EXERCISED = {"passed", "partly_exercised", "failed", "errored", "xfailed", "xpassed"}
# Capabilities that an environment may lack by design, without a sign of that.
_MAY_LACK = ("separate_rows", "repeatable")
_IN_SPACE = ("reset_obs_in_space", "step_obs_in_space", "terminal_observation_in_space")


class Session:
    """The checks of one environment, run one by one as they are asked for.

    Args:
        factory: Makes the environment.
        options: How to run them.
        family: Its interface; None to find out.
        target: Its name in the report.
        tell: Called with what is going on, and without a text while that goes on.

    Attributes:
        options: How to run them.
        subject: Facts about the environment.
        checks: The applicable checks that the options ask for.
        estimate: About how many seconds these take.

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
        tell: Tell = lambda text: None,
    ) -> None:
        options.check_names()
        self._clock = Clock(options.max_seconds)
        self.options = options
        self._target = target or getattr(factory, "__qualname__", repr(factory))
        self._place = ChildProcess(self._clock, tell) if options.isolate else Runner(tell)
        # A process with threads must not fork, which environments do.
        threads = min(os.cpu_count() or 1, _MOST_SCRIPTS)
        self._threads = ThreadPoolExecutor(threads) if options.isolate else None
        self._stop = Event()
        try:
            given: Given = {
                "factory": factory,
                "family": family,
                "declared": dict(options.capabilities),
                "options": options.options,
                "reference": options.reference,
            }
            with self._clock:
                self.subject = self._place.examine(given, _SCOUTING * self._clock.limit)
            self._known = known_failures(self.subject)
        except BaseException:
            self.close()
            raise
        applicable = checks_of(self.subject.family, self.subject.mode)
        self._all = {check.id: check for check in applicable}
        self.checks = [check for check in applicable if options.asks_for(check.id)]
        self._notes = self._left_out()
        programs = options.programs or programs_of(self.subject)
        self.estimate = estimate(self.subject, len(self.checks), programs)
        self._settings = Settings(
            seed=options.seed,
            programs=programs,
            make_env=options.make_env or factory_source(factory, options.reference),
        )
        # Whatever was expected.
        self._results: dict[str, Result] = {}
        # The checks that an earlier failure made pointless, and whether that was about bounds only.
        self._lost: dict[str, bool] = {}
        # The failures whose scripts are running.
        self._waiting: dict[str, Future[Result]] = {}

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes that run the checks and scripts."""
        self._place.close()
        self._stop.set()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def start(self, check: Check) -> Result:
        """Run a check, after the checks that it comes after.

        The script of a failure runs beside what follows, so that the failure may be withdrawn yet:
        `result` waits for that.
        """
        if check.id not in self._results:
            result = lacking(check, self.subject) or self._blocked(check) or self._late(check)
            if result is None:
                with self._clock:
                    result = self._run(check)
            self._results[check.id] = result
        return self._told(check.id)

    def result(self, check: Check) -> Result:
        """The result of a check; the checks that it comes after run first."""
        self.start(check)
        if check.id in self._waiting:
            with self._clock:
                self._results[check.id] = self._waiting[check.id].result()
            del self._waiting[check.id]
        return self._told(check.id)

    def so_far(self) -> list[Result]:
        """The results up to now, without waiting for scripts."""
        for name in self._waiting:
            self._results[name] = _not_run(self._results[name])
        self._waiting.clear()
        return [self._told(check.id) for check in self.checks if check.id in self._results]

    def _told(self, name: str) -> Result:
        """The result of a check, by what was expected."""
        return _with_expectation(self._results[name], self.options, self._known)

    def _run(self, check: Check) -> Result:
        """Run a check; a failure counts only if its script shows it in a Python of its own."""
        left = max(len(self.checks) - len(self._results), 1)
        result = self._place.run(check, replace(self._settings, seconds=self._clock.left / left))
        if result.status not in ("failed", "errored"):
            return result
        if self._clock.left < _LEAST_SECONDS:
            result = _not_run(result)
        elif self._threads is None or self._place.lost or self.subject.alone:
            result = confirmed(result, self._script_seconds(result))
        else:
            seconds = self._script_seconds(result)
            self._waiting[check.id] = self._threads.submit(confirmed, result, seconds, self._stop)
            return result
        self._place.remember(result)
        return result

    def _script_seconds(self, result: Result) -> float:
        """The time limit of a script."""
        least = _HANG_SECONDS if result.message.startswith("timeout") else _SCRIPT_SECONDS
        return self._clock.within(least + _LIMIT_MAKES * self.subject.make_seconds)

    def cause(self, check: Check) -> Result | None:
        """The failure for which a check was skipped; None if it was not skipped for one."""
        name = self._results[check.id].cause
        return self._told(name) if name else None

    def hidden(self, check: Check) -> bool:
        """Whether a check was skipped for an expected failure, and is not expected to fail."""
        cause = self.cause(check)
        known = self.options.known_upstream and check.id in self._known
        named = check.id in self.options.expected_failures
        expected = known or named or self._lost.get(check.id, False)
        return cause is not None and cause.status == "xfailed" and not expected

    def report(self, results: Iterable[Result]) -> Report:
        """The report of these results, and of the failures for which some were skipped."""
        chosen = {result.check_id: result for result in results}
        for name in filter(None, [result.cause for result in chosen.values()]):
            chosen[name] = self._told(name)
        hidden = self._hidden_by(chosen)
        for cause, names in hidden.items() if self.options.strict else ():
            message = f"{self._results[cause].message}. {_hides(cause, names)}"
            chosen[cause] = replace(self._results[cause], message=message)
        notes = tuple(_hides(cause, names) for cause, names in hidden.items())
        ordered = [chosen[name] for name in self._all if name in chosen]
        return Report(
            target=self._target,
            family=self.subject.family,
            mode=self.subject.mode,
            num_envs=self.subject.num_envs,
            seed=self.options.seed,
            results=tuple(ordered),
            strict=self.options.strict,
            versions=versions(),
            notes=(
                *self.subject.notes,
                *self._notes,
                *_guessed(self.subject),
                *_lacking(self.subject, self.checks),
                *_by_design(self.checks, chosen),
                *notes,
            ),
            seconds=self._clock.passed,
            require_exercised=self.options.require_exercised,
        )

    def _hidden_by(self, chosen: Iterable[str]) -> dict[str, list[str]]:
        """The checks that expected failures hide, by these."""
        found: dict[str, list[str]] = {}
        for name in chosen:
            if self.hidden(self._all[name]):
                found.setdefault(self._results[name].cause, []).append(name)
        return found

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
            raise OptionsError(
                f"Expected checks of {about} in `only`, got {got}{less}. "
                f"Run `sb3compat list --family {self.subject.family}`, which shows them."
            )
        others = [name for name in options.only if not fnmatch.filter(self._all, name)]
        left_out = [name for name in self._all if options.leaves_out(name)]
        notes = [f"{name} is no check of {about}" for name in others]
        return (*notes, *([f"left out, as asked: {', '.join(left_out)}"] if left_out else []))

    def _blocked(self, check: Check) -> Result | None:
        """The result of a check that is pointless because one before it failed, or None.

        A check that was skipped for a missing capability, or was not exercised, blocks nothing.
        """
        for name in check.after:
            before = self._all.get(name)
            if before is None or self.options.leaves_out(name):
                continue
            result = self.result(before)
            failed = result.status in ("failed", "errored", "xfailed")
            # A factory that fails on some calls says nothing about the check.
            failed = failed and not result.message.startswith(FACTORY_FAILS)
            by_bounds = self._lost.get(name, result.finding is not None and result.finding.bounds)
            # Only the checks of bounds would repeat a failure about bounds.
            if (failed or name in self._lost) and (not by_bounds or check.id in _IN_SPACE):
                self._lost[check.id] = by_bounds
                how = "warned" if result.severity == "warning" else "failed"
                message = f"comes after {name}, which has {how}"
                return Result.of(check, "skipped", message=message, cause=result.cause or name)
        return None

    def _late(self, check: Check) -> Result | None:
        """The result of a check for which no time is left, or None."""
        if self._clock.left > 0:
            return None
        message = f"no time was left: all checks take about {self.estimate:.0f} s, with max_seconds"
        message = f"{message}={self._clock.limit:g}"
        found = {result.status for result in self._results.values()}
        if found & {"failed", "errored", "xfailed"} or (
            found & _EXERCISED and not self.subject.lost
        ):
            return Result.of(check, "not_exercised", message=message)
        # A run that tells nothing, or not of a hang, is not to look like one that found nothing.
        lost = f"{self.subject.lost}; " if self.subject.lost else ""
        return replace(Result.of(check, "errored", message=lost + message), severity="error")


def _not_run(result: Result) -> Result:
    why = "its script was not run once more, as no time was left"
    return replace(result, message=f"{result.message} ({why})")


def _hides(cause: str, names: list[str]) -> str:
    count = f"{len(names)} check{'s' if len(names) > 1 else ''}"
    return f"{cause} fails as expected, so {count} after it could not be run: {', '.join(names)}"


def _lacking(subject: Subject, checks: Iterable[Check]) -> list[str]:
    """Notes on what is not checked, as abilities were looked for and not found."""
    names: dict[str, list[str]] = {}
    for check in checks:
        for name in subject.missing(check.needs)[:1]:
            names.setdefault(name, []).append(check.id)
    return [
        f"Not checked: {', '.join(ids)}. Such checks need {_needed(name)}.{_way_out(subject, name)}"
        for name, ids in names.items()
        if name in PROBED
    ]


def _guessed(subject: Subject) -> list[str]:
    """A note on options that the user has not given."""
    if not subject.guessed:
        return []
    tried = f"Its reset looks for options; {subject.options} was tried."
    return [f"{tried}{_way_out(subject, 'options')}"]


def _by_design(checks: Iterable[Check], results: Mapping[str, Result]) -> list[str]:
    """A note on failures that something which lasts, or is shared, may explain."""
    failed = [c for c in checks if c.id in results and results[c.id].status == "failed"]
    lacking = [name for name in _MAY_LACK if any(name in check.needs for check in failed)]
    if not lacking:
        return []
    flags = " ".join(f"--no-capability {name}" for name in lacking)
    return [f"If rows share statistics or a world by design, or these outlast resets: {flags}."]


def _way_out(subject: Subject, capability: str) -> str:
    """What to pass where the environment may have what was not found; or nothing."""
    if capability != "options":
        return ""
    keys = ", ".join(f'"{name}": ...' for name in subject.asked) or "..."
    what = "what its reset looks for" if subject.asked else "options that it understands"
    return f" Pass {what}: --reset-options '{{{keys}}}', in Python options={{{keys}}}."


def _needed(capability: str) -> str:
    """What a check needs, in a few words: "takes seeds" becomes "an environment that …"."""
    words = re.split("[:;]", CAPABILITIES[capability])[0]
    return (
        words.removeprefix("has ") if words.startswith("has ") else f"an environment that {words}"
    )


def _with_expectation(result: Result, options: Options, known: Mapping[str, str]) -> Result:
    """The result of a check that was expected to fail by the user, or is known to fail upstream.

    What another library gets wrong is not the fault of the environment: if not expected, a warning.
    """
    failed = result.status in ("failed", "errored")
    reason = options.expected_failures.get(result.check_id)
    if reason is None:
        if result.check_id not in known or not failed:
            return result
        reason = f"known upstream: {known[result.check_id]}"
        if not options.known_upstream:
            return replace(result, severity="warning", message=f"{result.message} ({reason})")
    if failed:
        return replace(result, status="xfailed", message=f"{result.message}; expected: {reason}")
    if result.status == "passed":
        return replace(result, status="xpassed", message=f"expected to fail: {reason}")
    return result
