"""Check an environment: all checks of its family, one after the other."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.contract import Check
from sb3compat.conformance.findings import FactoryError, Family, family_name, nearest
from sb3compat.conformance.program.source import factory_source
from sb3compat.conformance.run.isolate import Child, ChildFailureError
from sb3compat.conformance.run.report import Moment, Report, Result
from sb3compat.conformance.run.runner import Settings, reproduction, run_check
from sb3compat.conformance.subject.capabilities import CAPABILITIES
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.subject.scout import unscouted
from sb3compat.conformance.subject.subject import Subject

OnFail = Literal["raise"] | None
# Called with a check, its result (None when it begins), its number, and the number of checks.
Progress = Callable[[Check, Result | None, int, int], None]

MAX_SECONDS = 50.0
_IN_SPACE = ("reset_obs_in_space", "step_obs_in_space", "terminal_observation_in_space")
# So much later than the user has asked for, checks are no longer begun.
_LATE = 30.0
# What one check of a quick environment gets at most, when few are chosen: it needs no more, and the
# time after which it is taken to hang goes by it.
_MOST_SHARE = 5.0
# What a check takes for two programs, where construction or steps are slow: instances and episodes.
_MAKES, _EPISODES, _STEPS_WITHOUT_END = 4, 4, 50
# One check may hold up the run for so long, and so many times its share, before it is lost; an
# environment that is slow gets the time of so many constructions and steps on top.
_LEAST_LIMIT = 30.0
_LIMIT = 5.0
_LIMIT_MAKES, _LIMIT_STEPS = 10, 1000
_LEAST_PATIENCE = 1 / 3

_PACKAGES = ("sb3compat", "gymnasium", "stable-baselines3", "numpy", "hypothesis")


class ConformanceError(AssertionError):
    """An environment breaks its contract; `report` says where."""

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report


class OptionsError(ValueError):
    """An option names something that there is not."""


@dataclass(frozen=True)
class Options:
    """How to run the kit.

    Attributes:
        seed: Of the programs that are drawn.
        max_seconds: How long all checks together may take, more or less; what comes late is not
            exercised. None for what the environment needs: a minute at most if it is quick, and
            the longer the slower it is to make and to step.
        only: The ids of the checks to run; all where it is empty.
        expected_failures: Ids of checks that are known to fail, each with the reason.
        strict: Whether warnings, and expected failures that pass, fail the run.
        isolate: Whether to run the checks in a process of their own.
        make_env: Source that defines `make_env`, and `reference` if there is one, in
            reproductions; None to take it from the factory, where that can be done.
        capabilities: Capabilities that the environment has or has not, whatever it looks like.
        options: Options that its `reset` understands.
        reference: The factories of its single environments, one for each row.
    """

    seed: int = 0
    max_seconds: float | None = None
    only: tuple[str, ...] = ()
    expected_failures: Mapping[str, str] = field(default_factory=dict)
    strict: bool = False
    isolate: bool = True
    make_env: str | None = None
    capabilities: Mapping[str, bool] = field(default_factory=dict)
    options: Mapping[str, Any] | None = None
    reference: Any = None


def check_vec_env(
    factory: Callable[[], Any], *, on_fail: OnFail = "raise", **options: Any
) -> Report:
    """Check that a Stable-Baselines3 `VecEnv` keeps its contract.

    Args:
        factory: Makes the environment, a new one with each call. It is carried to another process
            by cloudpickle.
        on_fail: `"raise"` to raise at the first broken contract, None to run all checks.
        **options: As for `Options`: `seed`, `max_seconds`, `only`, `expected_failures`, `strict`,
            `isolate`, `capabilities`, `options`, `reference`.

    Returns:
        The report.

    Raises:
        ConformanceError: If a contract is broken, with `on_fail="raise"`.
        FactoryError: If the factory makes no vector environment.
        ValueError: If an option names a check or a capability that there is not.

    Example:
        >>> import gymnasium as gym
        >>> from stable_baselines3.common.vec_env import DummyVecEnv
        >>> from sb3compat.conformance import check_vec_env
        >>> report = check_vec_env(lambda: DummyVecEnv([lambda: gym.make("CartPole-v1")] * 3))
        >>> report.ok
        True
    """
    return _checked("vec_env", factory, on_fail, options)


def check_vector_env(
    factory: Callable[[], Any], *, on_fail: OnFail = "raise", **options: Any
) -> Report:
    """Check that a Gymnasium `VectorEnv` keeps its contract, in the autoreset mode that it has.

    Args:
        factory: Makes the environment, a new one with each call.
        on_fail: `"raise"` to raise at the first broken contract, None to run all checks.
        **options: As for `check_vec_env`.

    Returns:
        The report.

    Raises:
        ConformanceError: If a contract is broken, with `on_fail="raise"`.
        FactoryError: If the factory makes no vector environment.
        ValueError: If an option names a check or a capability that there is not.
    """
    return _checked("vector_env", factory, on_fail, options)


def _checked(
    family: Family, factory: Callable[[], Any], on_fail: OnFail, options: dict[str, Any]
) -> Report:
    if on_fail not in ("raise", None):
        raise ValueError(f"Expected on_fail to be 'raise' or None, got on_fail={on_fail!r}.")
    return run(
        factory, family=family, stop_at_failure=on_fail == "raise", options=Options(**options)
    )


def run(
    factory: Callable[[], Any],
    *,
    options: Options,
    family: Family | None = None,
    target: str = "",
    stop_at_failure: bool = False,
    progress: Progress = lambda check, result, number, count: None,
) -> Report:
    """Run the checks; what the functions, the command line and pytest have in common.

    Raises:
        ConformanceError: With `stop_at_failure`, at the first failure that counts.
    """
    with Session(factory, options=options, family=family, target=target) as session:
        results: list[Result] = []
        for number, check in enumerate(session.checks, 1):
            progress(check, None, number, len(session.checks))
            result = session.result(check)
            results.append(result)
            progress(check, result, number, len(session.checks))
            if stop_at_failure and not (report := session.report(results)).ok:
                raise ConformanceError(complaint(result), report)
        return session.report(results)


class Session:
    """The checks of one environment, run one by one as they are asked for.

    Args:
        factory: Makes the environment.
        options: How to run them.
        family: Which interface it has; None to look.
        target: What it is called in the report.

    Attributes:
        options: How to run them.
        subject: What is known of the environment.
        applicable: The checks that apply to it.
        checks: Those of them that the options ask for.

    Raises:
        FactoryError: If the factory makes no vector environment. What it raises itself comes
            through.
        OptionsError: If an option names a check or a capability that there is not.
    """

    def __init__(
        self,
        factory: Callable[[], Any],
        *,
        options: Options,
        family: Family | None = None,
        target: str = "",
    ) -> None:
        _check_names(options)
        self._begin = time.perf_counter()
        self.options = options
        self._target = target or getattr(factory, "__qualname__", repr(factory))
        self._runner = _Isolated(options) if options.isolate else _Here(options)
        try:
            self.subject = self._runner.examine(factory, family)
        except BaseException:
            self.close()
            raise
        self.applicable = checks_of(self.subject.family, self.subject.mode)
        self._all = {check.id: check for check in self.applicable}
        self.checks = [c for c in self.applicable if not options.only or c.id in options.only]
        self._notes = self._left_out()
        self._needed = _needed(self.subject, len(self.checks))
        self._settings = Settings(
            seed=options.seed,
            seconds=(options.max_seconds or self._needed) / max(len(self.checks), 1),
            make_env=options.make_env or factory_source(factory, options.reference),
        )
        self._results: dict[str, Result] = {}
        # What could not be run, and whether only for the sake of bounds.
        self._lost: dict[str, bool] = {}

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process that runs the checks."""
        self._runner.close()

    def result(self, check: Check) -> Result:
        """What a check finds; those that it comes after are run first."""
        if check.id not in self._results:
            result = (
                self._blocked(check) or self._late(check) or self._runner.run(check, self._settings)
            )
            self._results[check.id] = _with_expectation(result, self.options)
        return self._results[check.id]

    def report(self, results: Iterable[Result]) -> Report:
        """The report of these results."""
        return Report(
            target=self._target,
            family=self.subject.family,
            mode=self.subject.mode,
            num_envs=self.subject.num_envs,
            seed=self.options.seed,
            results=tuple(results),
            strict=self.options.strict,
            versions=_versions(),
            notes=(*self.subject.notes, *self._notes),
            seconds=time.perf_counter() - self._begin,
        )

    def _left_out(self) -> tuple[str, ...]:
        """What to say of checks that were asked for and are not for this environment."""
        about = family_name(self.subject.family)
        if self.subject.mode:
            about += f" in autoreset mode {self.subject.mode}"
        others = [name for name in self.options.only if name not in self._all]
        if others and not self.checks:
            self.close()
            raise OptionsError(f"Expected checks of {about} in `only`, got {', '.join(others)}.")
        return tuple(f"{name} is no check of {about}" for name in others)

    def _blocked(self, check: Check) -> Result | None:
        """What to say of a check that could tell nothing, as one before it has failed.

        One that was skipped as a capability is missing, or that was not exercised, blocks nothing.
        """
        if self.subject.missing(check.needs):
            return None  # it says so itself
        for name in check.after:
            before = self._all.get(name)
            if before is None:
                continue
            result = self.result(before)
            failed = result.status in ("failed", "errored", "xfailed")
            by_bounds = self._lost.get(name, result.finding is not None and result.finding.bounds)
            # Bounds that are wrong would be told again by these, and matter to no others.
            if (failed or name in self._lost) and (not by_bounds or check.id in _IN_SPACE):
                self._lost[check.id] = by_bounds
                return Result.of(check, "skipped", message=f"comes after {name}, which has failed")
        return None

    def _late(self, check: Check) -> Result | None:
        """What to say of a check for which the user has left no time."""
        limit = self.options.max_seconds
        if limit is None or time.perf_counter() - self._begin < 2 * limit + _LATE:
            return None
        if self.subject.missing(check.needs):
            return None  # it says so itself, and at once
        message = f"no time was left: all checks take about {self._needed:.0f} s, with max_seconds"
        return Result.of(check, "not_exercised", message=f"{message}={limit:g}")


def _needed(subject: Subject, checks: int) -> float:
    """How long the checks take at the pace of this environment."""
    steps = subject.endings[0].steps if subject.endings else _STEPS_WITHOUT_END
    each = _MAKES * subject.make_seconds + _EPISODES * steps * subject.step_seconds
    return max(min(MAX_SECONDS, checks * _MOST_SHARE), checks * each)


class _Here:
    """Runs checks in this process, where a debugger sees them."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.subject: Subject | None = None

    def examine(self, factory: Callable[[], Any], family: Family | None) -> Subject:
        self.subject = examine(**_payload(factory, family, self.options))
        return self.subject

    def run(self, check: Check, settings: Settings) -> Result:
        assert self.subject is not None
        return run_check(check, self.subject, settings)

    def close(self) -> None:
        pass


class _Isolated(_Here):
    """Runs checks in a child process, which is replaced when it is lost."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.child: Child | None = Child()
        # A share of the time limit: an environment that hangs in many checks is not to take hours.
        self._patience = 1.0

    def examine(self, factory: Callable[[], Any], family: Family | None) -> Subject:
        assert self.child is not None
        payload = _payload(factory, family, self.options)
        seconds = payload["seconds"]
        try:
            made = self.child.examine({**payload, "seconds": None}, _LEAST_LIMIT)
        except ChildFailureError as error:
            where = f" It was here, the innermost call first:\n{error.stack}" if error.stack else ""
            raise FactoryError(
                f"Expected an environment that can be made and closed, but: {error}.{where}"
            ) from None
        try:
            self.subject = self.child.scout(seconds, seconds + _LEAST_LIMIT)
        except ChildFailureError as error:
            self.close()
            self.subject = unscouted(made, f"Looking for the end of an episode: {error}")
        return self.subject

    def run(self, check: Check, settings: Settings) -> Result:
        assert self.subject is not None
        slow = _LIMIT_MAKES * self.subject.make_seconds + _LIMIT_STEPS * self.subject.step_seconds
        limit = (_LEAST_LIMIT + _LIMIT * settings.seconds + slow) * self._patience
        begin = time.perf_counter()
        try:
            return self._living().run(check, settings, limit)
        except ChildFailureError as error:
            seconds = time.perf_counter() - begin
            lines = self.child.last_program() if self.child else []
            self.close()
            self._patience = max(self._patience / 2, _LEAST_PATIENCE)
            script = reproduction(check, self.subject, settings, lines) if lines else ""
            return Result.of(
                check,
                "errored",
                message=str(error),
                reproduction=script,
                trace=error.stack,
                timeline=self._before(lines, settings),
                seconds=seconds,
            )

    def _living(self) -> Child:
        """A child that knows the subject."""
        assert self.subject is not None
        if self.child is None:
            self.child = Child()
            self.child.adopt(self.subject)
        return self.child

    def _before(self, lines: list[str], settings: Settings) -> tuple[Moment, ...]:
        """What came of the steps before the statement that was not survived."""
        try:
            return self._living().timeline(lines[:-1], settings, _LEAST_LIMIT) if lines else ()
        except ChildFailureError:
            self.close()
            return ()

    def close(self) -> None:
        if self.child is not None:
            self.child.close()
            self.child = None


def _payload(factory: Callable[[], Any], family: Family | None, options: Options) -> dict[str, Any]:
    return {
        "factory": factory,
        "family": family,
        "declared": dict(options.capabilities),
        "options": options.options,
        "reference": options.reference,
        "seconds": (options.max_seconds or MAX_SECONDS) / 5,
    }


def _with_expectation(result: Result, options: Options) -> Result:
    reason = options.expected_failures.get(result.check_id)
    if reason is None:
        return result
    if result.status in ("failed", "errored"):
        return replace(result, status="xfailed", message=f"{result.message}; expected: {reason}")
    if result.status == "passed":
        return replace(result, status="xpassed", message=f"expected to fail: {reason}")
    return result


def _check_names(options: Options) -> None:
    """Refuse names that there are not, so that a typing error does not let a failure through."""
    ids = {check.id for check in checks_of()}
    for what, known, given in (
        ("the id of a check in `only`", ids, options.only),
        ("the id of a check in `expected_failures`", ids, options.expected_failures),
        ("a capability", set(CAPABILITIES), options.capabilities),
    ):
        for name in given:
            if name not in known:
                raise OptionsError(f"Expected {what}, got {name!r}.{nearest(name, known)}")


def complaint(result: Result) -> str:
    """All there is to say of a failure, with the reproduction."""
    parts = [
        f"{result.check_id}: {result.message}",
        f"The contract of {family_name(result.family)}: {result.contract}\n{result.source}",
    ]
    if result.reproduction:
        parts.append(f"To reproduce it:\n\n{result.reproduction}")
    if result.trace:
        parts.append(result.trace)
    return "\n\n".join(parts)


def _versions() -> dict[str, str]:
    def of(package: str) -> str:
        try:
            return version(package)
        except PackageNotFoundError:
            return "not installed"

    found = {"python": platform.python_version(), "platform": sys.platform}
    return found | {package: of(package) for package in _PACKAGES}
