"""What the command line does; `sb3compat.cli` has its arguments."""

from __future__ import annotations

import sys
import textwrap
from argparse import Namespace
from dataclasses import fields
from pathlib import Path
from typing import Any

from sb3compat.conformance.checks.catalogue import checks_of, find_checks
from sb3compat.conformance.commands.expected import load_expected
from sb3compat.conformance.commands.replay import replay as replayed
from sb3compat.conformance.commands.targets import (
    Making,
    Target,
    TargetError,
    resolve,
    resolve_reference,
)
from sb3compat.conformance.contract import Check
from sb3compat.conformance.findings import FAMILIES, FactoryError
from sb3compat.conformance.output import FORMATS, render, terminal
from sb3compat.conformance.run.child import factory_trace
from sb3compat.conformance.run.entry import run
from sb3compat.conformance.run.options import Options, OptionsError
from sb3compat.conformance.run.report import Report
from sb3compat.conformance.subject.capabilities import CAPABILITIES

_CLEAN, _FAILED, _WRONG_USE = 0, 1, 2

_SEVERITIES = {"error": "breaks the contract", "warning": "works, but is hazardous"}
_VERDICTS = {
    "fails": "still failing",
    "passes": "passing now",
    "other": "failing otherwise",
    "unable": "not run",
}


class _UsageError(Exception):
    """What was asked for makes no sense; the message says what would."""


def check(given: Namespace) -> int:
    """`sb3compat check`."""
    progress = terminal.Progress(sys.stderr, quiet=given.quiet)
    try:
        files = _files(given)
        target = _target(given.target, given)
        options = _options(given, target)
        progress.say(f"making {target.name} …")
        report = run(target.factory, options=options, target=target.name, progress=progress)
    except (_UsageError, FactoryError, OptionsError) as error:
        progress.clear()
        return _complain(str(error))
    except Exception as error:
        progress.clear()
        print(factory_trace(error), file=sys.stderr)
        return _complain(f"{given.target} cannot be made, see above. {_hint(given.target)}".strip())
    finally:
        progress.clear()
    for form, path in files:
        path.write_text(render(report, form), encoding="utf-8", errors="backslashreplace")
    if given.output is None:
        _show(report, given)
    return _CLEAN if report.ok else _FAILED


def making_of(given: Any) -> Making | None:
    """How to make an environment from an id, as far as that was said."""
    said = {part.name: getattr(given, part.name) for part in fields(Making)}
    return Making(**{name: value for name, value in said.items() if value is not None})


def _hint(target: str) -> str:
    if ":" in target or "-v" in target:
        return ""
    return (
        f"{target!r} was taken for the id of an environment; a factory is named "
        "package.module:name or path/to/file.py:name."
    )


def _files(given: Namespace) -> list[tuple[str, Path]]:
    """What to write where; places that cannot be written are refused before the run."""
    files = [(form, getattr(given, form)) for form in FORMATS[1:]]
    files = [(form, path) for form, path in [*files, (given.format, given.output)] if path]
    for form, path in files:
        if path.is_dir() or not path.parent.is_dir():
            raise _UsageError(
                f"Expected the path of a file in a folder that exists, for the report as {form}, "
                f"got {str(path)!r}. Make the folder, or name another one."
            )
    return files


def _target(text: str, given: Namespace) -> Target:
    try:
        return resolve(text, making_of(given))
    except TargetError as error:
        raise _UsageError(str(error)) from None


def _options(given: Namespace, target: Target) -> Options:
    both = set(given.capability) & set(given.no_capability)
    if both:
        raise _UsageError(
            f"Expected --capability or --no-capability for {min(both)!r}, got both. Take one out."
        )
    make_env, reference = target.source, None
    expected: dict[str, str] = {}
    try:
        if given.expected_failures is not None:
            expected = load_expected(given.expected_failures)
        if given.reference is not None:
            reference, source = resolve_reference(given.reference)
            make_env = f"{make_env}\n\n{source}"
    except (ValueError, ModuleNotFoundError) as error:
        raise _UsageError(str(error)) from None
    return Options(
        seed=given.seed,
        max_seconds=given.max_seconds,
        only=tuple(given.only),
        expected_failures=expected,
        strict=given.strict,
        isolate=not given.no_isolate,
        make_env=make_env,
        capabilities={
            **dict.fromkeys(given.capability, True),
            **dict.fromkeys(given.no_capability, False),
        },
        options=given.reset_options,
        reference=reference,
    )


def _show(report: Report, given: Namespace) -> None:
    if given.format != "terminal":
        print(render(report, given.format), end="")
    elif given.quiet:
        print(report.summary())
    else:
        print(terminal.render(report, colour=terminal.may_colour(sys.stdout)), end="")


def _complain(message: str) -> int:
    print(f"sb3compat: {message}", file=sys.stderr)
    return _WRONG_USE


def list_checks(given: Namespace) -> int:
    """`sb3compat list`."""
    known = checks_of(given.family)
    width = max(len(check.id) for check in known)
    heading: tuple[str, str] | None = None
    for check in known:
        if heading is None or check.family != heading[0]:
            print(f"{FAMILIES[check.family]}")
        if (check.family, check.group) != heading:
            print(f"\n  {check.group}")
        heading = (check.family, check.group)
        print(f"    {check.severity:<8} {check.id:<{width}}  {check.contract}")
    print("\nCapabilities, which some of them need")
    for name, meaning in CAPABILITIES.items():
        print(f"    {name:<15} {meaning}")
    print(f"\n{len(known)} checks. More on one of them: sb3compat explain ID")
    return _CLEAN


def explain(given: Namespace) -> int:
    """`sb3compat explain`."""
    try:
        found = find_checks(given.id)
    except ValueError as error:
        return _complain(str(error))
    print(("\n\n" + "-" * 40 + "\n\n").join(map(_explained, found)))
    return _CLEAN


def _explained(check: Check) -> str:
    particulars = {
        "Interface": f"{FAMILIES[check.family]}, {check.group}",
        "Severity": f"{check.severity}: {_SEVERITIES[check.severity]}",
        "Source": check.source,
        "Modes": ", ".join(check.modes),
        "Needs": "; ".join(f"{need} ({CAPABILITIES.get(need, '')})" for need in check.needs),
        "After": ", ".join(check.after),
    }
    lines = [f"{name + ':':<11}{value}" for name, value in particulars.items() if value]
    parts = [check.id, textwrap.fill(check.contract, 88), check.explanation, "\n".join(lines)]
    return "\n\n".join(filter(None, parts))


def replay(given: Namespace) -> int:
    """`sb3compat replay`."""
    verdicts = []
    try:
        source = None if given.target is None else _target(given.target, given).source
        for found in replayed(given.file, source, given.max_seconds):
            verdicts.append(found.verdict)
            said = textwrap.indent(found.said, "    ")
            print(f"{_VERDICTS[found.verdict]}: {found.name}", *filter(None, [said]), sep="\n")
    except (_UsageError, ValueError) as error:
        return _complain(str(error))
    counts = [
        f"{verdicts.count(verdict)} {words}"
        for verdict, words in _VERDICTS.items()
        if verdict in verdicts
    ]
    print(", ".join(counts) or "There is nothing to run: no result has a reproduction.")
    if "unable" in verdicts:
        return _WRONG_USE
    return _CLEAN if set(verdicts) <= {"passes"} else _FAILED


COMMANDS = {"check": check, "list": list_checks, "explain": explain, "replay": replay}
