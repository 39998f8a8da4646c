"""Every check of the conformance kit as a test: `pytest --vec-env my_package:make_env`.

Every pytest loads it where sb3compat is installed, so it imports the kit only for the option.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sb3compat.conformance.contract import Check
    from sb3compat.conformance.run.report import Result
    from sb3compat.conformance.run.session import Session

# The property of a report that says what a check could not tell; also the word for the outcome.
_PARTLY = "partly exercised"
_SESSIONS = pytest.StashKey["list[Session]"]()


class ConformanceWarning(pytest.PytestWarning):
    """A check that is only a warning failed."""


class BrokenContract(Exception):  # noqa: N818  (pytest shows the name)
    """A check failed; the message has the whole result."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, which are those of `sb3compat check`."""
    group = parser.getgroup("sb3compat", "conformance of vector environments (sb3compat)")
    group.addoption(
        "--vec-env", action="append", default=[], metavar="TARGET",
        help="check this VecEnv or VectorEnv, each check a test: package.module:factory, "
        "path/to/file.py:factory, or the id of an environment (repeatable)",
    )  # fmt: skip
    group.addoption("--vec-env-seed", type=int, default=0, metavar="N", help="of the programs")
    group.addoption(
        "--vec-env-max-seconds", type=float, default=None, metavar="S",
        help="how long all checks may take together, more or less",
    )  # fmt: skip
    group.addoption(
        "--vec-env-expected-failures", type=Path, default=None, metavar="FILE",
        help="a TOML file with the failures that are known: [id], reason = …, link = …",
    )  # fmt: skip
    group.addoption(
        "--vec-env-strict", action="store_true",
        help="let warnings, and expected failures that pass, fail",
    )  # fmt: skip
    group.addoption(
        "--vec-env-no-isolate", action="store_true",
        help="run the checks in this process, for a debugger",
    )  # fmt: skip


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Collect the checks after the files."""
    report = yield
    if isinstance(collector, pytest.Session) and report.passed:
        report.result.extend(
            ChecksCollector.from_parent(collector, name=target, nodeid=target)
            for target in collector.config.getoption("--vec-env")
        )
    return report


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the processes that ran the checks."""
    for session in config.stash.get(_SESSIONS, []):
        session.close()


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Tell checks that were exercised in part from those that passed."""
    if report.when == "call" and report.passed and _missing(report):
        return _PARTLY, "p", _PARTLY.upper()
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was not exercised in part, and what to pass."""
    found: dict[str, list[str]] = {}
    for report in terminalreporter.getreports(_PARTLY):
        found.setdefault(_missing(report), []).append(report.nodeid)
    if found:
        terminalreporter.section(_PARTLY)
    for missing, ids in found.items():
        terminalreporter.write_line(f"{missing}:")
        for name in ids:
            terminalreporter.write_line(f"    {name}")


def _missing(report: pytest.TestReport) -> str:
    return next((str(value) for name, value in report.user_properties if name == _PARTLY), "")


class ChecksCollector(pytest.Collector):
    """The checks of one environment."""

    def collect(self) -> Iterator[CheckItem]:
        """An item for each check that applies to the environment.

        Raises:
            CollectError: If the environment cannot be made.
        """
        session = _opened(self.name, self.config)
        self.config.stash.setdefault(_SESSIONS, []).append(session)
        options = session.options
        for check in session.checks:
            item = CheckItem.from_parent(self, name=check.id, check=check, checks=session)
            reason = options.expected_failures.get(check.id)
            if reason is not None:
                item.add_marker(pytest.mark.xfail(reason=reason, strict=options.strict))
            yield item


class CheckItem(pytest.Item):
    """A check."""

    def __init__(self, check: Check, checks: Session, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._check, self._checks = check, checks

    def runtest(self) -> None:
        """Run the check, after the checks that it comes after."""
        from sb3compat.conformance.run.entry import complaint

        result = self._checks.result(self._check)
        self.user_properties.append(("severity", result.severity))
        if result.status == "partly_exercised":
            self.user_properties.append((_PARTLY, result.message))
            return
        if result.status == "skipped":
            cause = self._checks.cause(self._check)
            if cause and self._counts(cause) and not self._is_run(cause.check_id):
                raise BrokenContract(f"{result.message}.\n\n{complaint(cause)}")
            pytest.skip(result.message)
        if result.status == "not_exercised":
            pytest.skip(f"not exercised: {result.message}")
        if result.status in ("passed", "xpassed"):
            return
        if self._counts(result):
            raise BrokenContract(complaint(result))
        self.warn(ConformanceWarning(f"{result.check_id}: {result.message}"))

    def _is_run(self, check_id: str) -> bool:
        """Whether another item reports this check."""
        items = self.session.items
        return any(item.parent is self.parent and item.name == check_id for item in items)

    def _counts(self, result: Result) -> bool:
        return (
            self._checks.options.strict or result.severity == "error" or result.status == "xfailed"
        )

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any) -> Any:
        """The result of the check, without a traceback of the kit."""
        if isinstance(excinfo.value, BrokenContract):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        """The place where the check is defined, and the title of a failure."""
        code = inspect.unwrap(self._check.function).__code__
        title = f"{self._check.id} [{self.parent.name if self.parent else ''}]"
        return Path(code.co_filename), code.co_firstlineno - 1, title


def _opened(target: str, config: pytest.Config) -> Session:
    """The session for the target that the option names."""
    try:
        from sb3compat.conformance.commands.expected import load_expected
        from sb3compat.conformance.commands.targets import TargetError, resolve
        from sb3compat.conformance.findings import FactoryError
        from sb3compat.conformance.run.child import factory_trace
        from sb3compat.conformance.run.options import Options, OptionsError
        from sb3compat.conformance.run.session import Session
    except ModuleNotFoundError as error:
        if error.name != "hypothesis":
            raise
        from sb3compat.errors import install_line

        raise pytest.Collector.CollectError(
            "Expected Hypothesis to be installed for --vec-env, which draws the programs. Install "
            f"it: {install_line('conformance')}"
        ) from None
    file = config.getoption("--vec-env-expected-failures")
    try:
        expected = load_expected(file) if file else {}
    except (ValueError, ModuleNotFoundError) as error:
        raise pytest.Collector.CollectError(str(error)) from None
    try:
        found = resolve(target)
        options = Options(
            seed=config.getoption("--vec-env-seed"),
            max_seconds=config.getoption("--vec-env-max-seconds"),
            expected_failures=expected,
            strict=config.getoption("--vec-env-strict"),
            isolate=not config.getoption("--vec-env-no-isolate"),
            make_env="\n\n\n".join(filter(None, [found.source, found.reference_source])),
            reference=found.reference,
        )
        return Session(found.factory, options=options, target=found.name)
    except (TargetError, FactoryError, OptionsError) as error:
        raise pytest.Collector.CollectError(str(error)) from None
    except Exception as error:
        raise pytest.Collector.CollectError(
            f"{factory_trace(error)}\n--vec-env {target} cannot be made, see above."
        ) from None
