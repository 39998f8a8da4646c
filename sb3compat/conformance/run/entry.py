"""The functions that check an environment: all checks of its interface, one after the other."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Literal, ParamSpec

from sb3compat.conformance.contract import Check
from sb3compat.conformance.findings import Family, family_name
from sb3compat.conformance.program.types import Factory, Reference
from sb3compat.conformance.run.child import Tell
from sb3compat.conformance.run.options import Options
from sb3compat.conformance.run.report import Report, Result
from sb3compat.conformance.run.session import Session

Given = ParamSpec("Given")
OnFail = Literal["raise"] | None
# Called with a check, its result (None when it begins), its number, and the number of checks.
Progress = Callable[[Check, Result | None, int, int], None]


class ConformanceError(AssertionError):
    """An environment breaks its contract; `report` has the results up to there."""

    __module__ = "sb3compat.conformance"  # where users import it from

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report


class InterruptedRunError(KeyboardInterrupt):
    """The user interrupted a run; `report` has the results up to there."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self.report = report


def check_vec_env(
    factory: Factory,
    *,
    on_fail: OnFail = "raise",
    seed: int = 0,
    max_seconds: float | None = None,
    programs: int | None = None,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    expected_failures: Mapping[str, str] | None = None,
    known_upstream: bool = False,
    strict: bool = False,
    isolate: bool = True,
    make_env: str | None = None,
    capabilities: Mapping[str, bool] | None = None,
    options: Mapping[str, Any] | None = None,
    reference: Reference | None = None,
    require_exercised: int = 0,
) -> Report:
    """Check that a Stable-Baselines3 `VecEnv` keeps its contract.

    Args:
        factory: Makes the environment, a new one with each call. It is pickled by cloudpickle, and
            called in another process.
        on_fail: `"raise"` to raise at the first broken contract, None to run all checks.
        seed: The seed of the programs.
        max_seconds: The time for all checks together, whatever hangs; checks that would begin
            later are not exercised. None for no limit.
        programs: How many programs each check runs; None for what the pace of the environment
            allows: 25 for a quick one, 1 for a very slow one.
        only: The ids of the checks to run; empty for all. `*` and `?` stand for other characters.
        skip: The ids of checks to leave out, with the same signs.
        expected_failures: The ids of checks that are known to fail, each with the reason.
        known_upstream: Whether the failures of other libraries that the kit knows, by class and
            version, are expected, too; one that passes is no surprise. By default, they are
            warnings.
        strict: Whether warnings, and expected failures that pass, fail the run.
        isolate: Whether to run the checks in a process of their own.
        make_env: Source that defines `make_env`, and `reference` if there is one, in
            reproductions; None to take it from the factory, where that can be done.
        capabilities: Capabilities that the environment has or lacks, whatever the kit would find.
        options: Options that its `reset` understands.
        reference: The factories of its single environments, one for each row. Every value is then
            compared with stepping them one by one.
        require_exercised: The report is not `ok` if fewer checks have a verdict.

    Returns:
        The report.

    Raises:
        ConformanceError: If a contract is broken, with `on_fail="raise"`.
        FactoryError: If the factory makes no vector environment.
        OptionsError: If an option has a wrong value, or names a check or a capability that does
            not exist. A `ValueError`.

    Example:
        >>> import gymnasium as gym
        >>> from stable_baselines3.common.vec_env import DummyVecEnv
        >>> from sb3compat.conformance import check_vec_env
        >>> report = check_vec_env(lambda: DummyVecEnv([lambda: gym.make("CartPole-v1")] * 3))
        >>> report.ok
        True
    """
    return _check("vec_env", **locals())


def _with_arguments_of(
    other: Callable[Given, Report],
) -> Callable[[Callable[..., Report]], Callable[Given, Report]]:
    """Show the signature of another function, to type checkers, in `help` and on the site."""

    def give(function: Callable[..., Report]) -> Callable[Given, Report]:
        function.__signature__ = inspect.signature(other)  # type: ignore[attr-defined]
        function.__annotations__ = other.__annotations__
        return function

    return give


@_with_arguments_of(check_vec_env)
def check_vector_env(factory: Factory, **given: Any) -> Report:
    """Check that a Gymnasium `VectorEnv` keeps the contract of its autoreset mode.

    The arguments, the report and the exceptions are those of `check_vec_env`.
    """
    inspect.signature(check_vec_env).bind(factory, **given)  # refuses an unknown keyword
    return _check("vector_env", factory=factory, **given)


def _check(
    family: Family,
    *,
    factory: Factory,
    on_fail: OnFail = "raise",
    expected_failures: Mapping[str, str] | None = None,
    capabilities: Mapping[str, bool] | None = None,
    **options: Any,
) -> Report:
    given = Options(
        expected_failures=expected_failures or {}, capabilities=capabilities or {}, **options
    )
    if on_fail not in ("raise", None):
        raise ValueError(
            f"Expected on_fail to be 'raise' or None, got on_fail={on_fail!r}. Pass one of these."
        )
    return run(factory, family=family, stop_at_failure=on_fail == "raise", options=given)


def run(
    factory: Factory,
    *,
    options: Options,
    family: Family | None = None,
    target: str = "",
    stop_at_failure: bool = False,
    progress: Progress = lambda check, result, number, count: None,
    tell: Tell = lambda text: None,
    began: Callable[[Session], None] = lambda session: None,
) -> Report:
    """Run the checks: the common part of the functions, the command line and pytest.

    Args:
        factory: Makes the environment.
        options: How to run them.
        family: Its interface; None to find out.
        target: Its name in the report.
        stop_at_failure: Whether to raise at the first failure that fails the run.
        progress: Called before and after each check.
        tell: Called with what is going on, and without a text while that goes on.
        began: Called before the first check.

    Raises:
        ConformanceError: With `stop_at_failure`, at the first failure that fails the run.
        InterruptedRunError: If the user interrupts it.
    """
    with Session(factory, options=options, family=family, target=target, tell=tell) as session:
        count = len(session.checks)
        began(session)
        try:
            for number, check in enumerate(session.checks, 1):
                progress(check, None, number, count)
                result = session.result(check) if stop_at_failure else session.start(check)
                progress(check, result, number, count)
                if stop_at_failure:
                    report = session.report(session.so_far())
                    for failure in report.failures():
                        raise ConformanceError(complaint(failure), report)
            report = session.report([session.result(check) for check in session.checks])
        except KeyboardInterrupt:
            results = session.so_far()
            report = session.report(results)
            note = f"interrupted after {len(results)} of {count} checks"
            raise InterruptedRunError(replace(report, notes=(*report.notes, note))) from None
        if stop_at_failure and not report.ok:
            raise ConformanceError(f"{report.target}: {report.summary()}", report)
        return report


def complaint(result: Result) -> str:
    """A failure in full: the contract, its source, the reproduction, the traceback."""
    parts = [
        f"{result.check_id}: {result.message}",
        f"The contract of {family_name(result.family)}: {result.contract}\n{result.source}",
    ]
    if result.reproduction:
        parts.append(f"To reproduce it:\n\n{result.reproduction}")
    if result.trace:
        parts.append(result.trace)
    return "\n\n".join(parts)
