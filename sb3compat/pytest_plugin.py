"""Every check of the conformance kit as a test: `pytest --vec-env my_package:make_env`.

Every pytest loads it where sb3compat is installed, so it imports the kit only for the option.
"""

from __future__ import annotations

import inspect
import re
from argparse import Namespace
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sb3compat._arguments import KNOWLEDGE, MAKING, RUN, SettingsError, settings

if TYPE_CHECKING:
    from sb3compat.conformance import Report
    from sb3compat.conformance.contract import Check
    from sb3compat.conformance.run.report import Result
    from sb3compat.conformance.run.session import Session

# The property of a report that says what a check could not test; also the name of the outcome.
_PARTLY = "partly exercised"
_HIDDEN = (
    "That was expected, but the result of this check is unknown: add it to the expected failures, "
    "too."
)
# How many checks the summary names for a reason.
_MOST_NAMES = 3
_SESSIONS = pytest.StashKey["list[Session]"]()
# The checks that the arguments name as this plugin prints them, by target.
_CHOSEN = pytest.StashKey["dict[str, list[str]]"]()
_ITEM = re.compile(
    r"(?P<target>(?:.+\.py|[\w.]+):[A-Za-z_][\w.]*|[\w./:-]+-v\d+)::(?P<check>[A-Za-z_]\w*)"
)
_MARKER = (
    "vec_env(**options): options of sb3compat.conformance.check_vec_env for the fixture "
    "check_conformance, such as reference=[make_single] * 3"
)


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
    for argument in (*RUN, *KNOWLEDGE):
        argument.add(group.addoption, "--vec-env-")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", _MARKER)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Take the ids of checks out of the arguments; not before, as xdist hands these on."""
    config = session.config
    chosen: dict[str, list[str]] = {}
    for argument in list(config.args):
        found = _ITEM.fullmatch(argument)
        if found and not (config.invocation_params.dir / found["target"]).exists():
            chosen.setdefault(found["target"], []).append(found["check"])
            config.args.remove(argument)
    config.stash[_CHOSEN] = chosen


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Collect the checks after the files."""
    report = yield
    if isinstance(collector, pytest.Session) and report.passed:
        config = collector.config
        report.result.extend(
            ChecksCollector.from_parent(collector, name=target, nodeid=target)
            for target in config.stash[_CHOSEN] or config.getoption("--vec-env")
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
        for missing in _missing(report):
            found.setdefault(missing, []).append(report.nodeid)
    if found:
        terminalreporter.section(_PARTLY)
    for missing, ids in found.items():
        terminalreporter.write_line(f"{missing}:")
        shown = ids if terminalreporter.verbosity > 0 else ids[:_MOST_NAMES]
        for name in shown:
            terminalreporter.write_line(f"    {name}")
        if len(shown) < len(ids):
            terminalreporter.write_line(f"    and {len(ids) - len(shown)} more; -v names them")


def _missing(report: pytest.TestReport) -> list[str]:
    return [str(value) for name, value in report.user_properties if name == _PARTLY]


@pytest.fixture
def check_conformance(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """A function that checks the environments of a factory: `check_conformance(make_env)`.

    It takes the options of `check_vec_env`. Those that are not passed are taken from the marker
    `vec_env`, then from the options of pytest, then from pyproject.toml.
    """
    from sb3compat.conformance.commands.check import options_of
    from sb3compat.conformance.commands.targets import Target
    from sb3compat.conformance.run.entry import ConformanceError, complaint, run
    from sb3compat.errors import warn

    __tracebackhide__ = True
    marked = _marked(request.node)

    def check_conformance(factory: Callable[[], Any], **options: Any) -> Report:
        __tracebackhide__ = True
        _check_names(options, "check_conformance")
        usual = options_of(_given("", request.config), Target("", factory, ""))
        report = run(factory, options=replace(usual, **{"make_env": None, **marked, **options}))
        failures = tuple(report.failures())
        for result in report.results:
            if result.status in ("failed", "errored") and result not in failures:
                warn(_warning(result))
        request.node.user_properties += _properties(report)
        if failures:
            raise ConformanceError("\n\n".join(map(complaint, failures)), report)
        return report

    return check_conformance


def _marked(node: pytest.Item) -> dict[str, Any]:
    """The options in the markers `vec_env` of a test.

    Raises:
        UsageError: If a marker has an argument without a name, or an unknown option.
    """
    __tracebackhide__ = True
    marked: dict[str, Any] = {}
    for marker in node.iter_markers("vec_env"):
        if marker.args:
            raise pytest.UsageError(
                "Expected @pytest.mark.vec_env(name=value), with options of check_vec_env, got an "
                f"argument without a name: {marker.args[0]!r}. Name it, such as only=['dones_*']; "
                "pass the function that makes the environment to check_conformance."
            )
        _check_names(marker.kwargs, "@pytest.mark.vec_env")
        marked = {**marker.kwargs, **marked}
    return marked


def _check_names(options: Iterable[str], where: str) -> None:
    """Refuse an option that the kit does not have.

    Raises:
        UsageError: If there is one; the message names the nearest.
    """
    from sb3compat.conformance.run.options import Options
    from sb3compat.errors import nearest

    __tracebackhide__ = True
    known = [option.name for option in fields(Options)]
    for name in options:
        if name not in known:
            hint = nearest(name, known, f"They are {', '.join(known)}.")
            raise pytest.UsageError(
                f"Expected options of check_vec_env in {where}(…), got {name}=.{hint}"
            )


def _properties(report: Report) -> list[tuple[str, object]]:
    """What the summary shows of a test that has checked a whole environment."""
    found: dict[str, list[str]] = {}
    for result in report.results:
        if result.status == "partly_exercised":
            found.setdefault(result.message, []).append(result.check_id)
    return [(_PARTLY, f"{missing} ({', '.join(ids)})") for missing, ids in found.items()]


def _warning(result: Result) -> ConformanceWarning:
    return ConformanceWarning(f"{result.check_id}: {result.message}")


class ChecksCollector(pytest.Collector):
    """The checks of one environment."""

    def collect(self) -> Iterator[CheckItem]:
        """An item for each check that applies to the environment.

        Raises:
            CollectError: If the environment cannot be made.
        """
        session, place = _opened(self.name, self.config)
        self.config.stash.setdefault(_SESSIONS, []).append(session)
        options = session.options
        for check in session.checks:
            item = CheckItem.from_parent(
                self, name=check.id, check=check, checks=session, place=place
            )
            reason = options.expected_failures.get(check.id)
            if reason is not None:
                item.add_marker(pytest.mark.xfail(reason=reason, strict=options.strict))
            yield item


class CheckItem(pytest.Item):
    """A check."""

    def __init__(
        self, check: Check, checks: Session, place: tuple[Path, int], **arguments: Any
    ) -> None:
        super().__init__(**arguments)
        self._check, self._checks, self._place = check, checks, place

    def runtest(self) -> None:
        """Run the check, after the checks that it comes after."""
        from sb3compat.conformance.run.entry import complaint

        result = self._checks.result(self._check)
        self.user_properties.append(("severity", result.severity))
        if result.status == "partly_exercised":
            self.user_properties.append((_PARTLY, result.message))
            return
        if result.status == "skipped":
            if self._checks.options.strict and self._checks.hidden(self._check):
                raise BrokenContract(f"{result.message}. {_HIDDEN}")
            cause = self._checks.cause(self._check)
            if cause and self._counts(cause) and not self._is_run(cause.check_id):
                raise BrokenContract(f"{result.message}.\n\n{complaint(cause)}")
            pytest.skip(result.message)
        if result.status == "not_exercised":
            pytest.skip(f"not exercised: {result.message}")
        if result.status in ("passed", "xpassed"):
            return
        if (
            result.status == "xfailed"
            and result.check_id not in self._checks.options.expected_failures
        ):
            pytest.xfail(result.message)  # known upstream: no marker, as it may also pass
        if self._counts(result):
            raise BrokenContract(complaint(result))
        self.warn(_warning(result))

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
        """Where the environment is made, at which warnings point, and the title of a failure."""
        title = f"{self._check.id} [{self.parent.name if self.parent else ''}]"
        return *self._place, title


def _place_of(factory: Callable[..., Any], target: str) -> tuple[Path, int]:
    """The file and line of the user's function or class; of an id, the id in place of the file."""
    while isinstance(factory, partial):
        factory = factory.func
    with suppress(TypeError, OSError):  # an object that can be called; an id, which has no file
        found = inspect.unwrap(factory)
        file = inspect.getsourcefile(found)
        if file is not None and Path(file).is_file():
            return Path(file), max(inspect.getsourcelines(found)[1] - 1, 0)
    return Path(target.partition(":")[0]), 0


def _opened(target: str, config: pytest.Config) -> tuple[Session, tuple[Path, int]]:
    """The session for the target that the option names, and where the target is written."""
    from sb3compat.conformance.commands.check import options_of, why_not_made
    from sb3compat.conformance.commands.targets import making_of, resolve
    from sb3compat.conformance.commands.usage import UsageError
    from sb3compat.conformance.findings import FactoryError
    from sb3compat.conformance.run.options import OptionsError
    from sb3compat.conformance.run.session import Session

    try:
        given = _given(target, config)
        found = resolve(target, making_of(given))
        options = options_of(given, found)
        if chosen := config.stash[_CHOSEN].get(target):
            options = replace(options, only=tuple(chosen))
        session = Session(found.factory, options=options, target=found.name)
        return session, _place_of(found.factory, target)
    except (UsageError, SettingsError, FactoryError, OptionsError) as error:
        raise pytest.Collector.CollectError(str(error)) from None
    except Exception as error:
        trace, line = why_not_made(target, error)
        raise pytest.Collector.CollectError(f"{trace}--vec-env {line}") from None


def _given(target: str, config: pytest.Config) -> Namespace:
    """The options of a run, as the command line would give them.

    Raises:
        SettingsError: If the settings in pyproject.toml make no sense.
    """
    given = {a.dest: config.getoption(f"vec_env_{a.dest}") for a in (*RUN, *KNOWLEDGE)}
    given |= {argument.dest: None for argument in MAKING}
    return settings(config.invocation_params.dir).fill(Namespace(target=target, **given))
