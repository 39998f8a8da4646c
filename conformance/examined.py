"""What the kit says of one target."""

from __future__ import annotations

import argparse
import json
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from conformance import results
from conformance.targets import TARGETS, Target
from sb3compat.conformance.output import render
from sb3compat.conformance.run.entry import run
from sb3compat.conformance.run.options import Options
from sb3compat.conformance.run.report import Report

BUILD = Path(__file__).parents[1] / "build" / "conformance"


def examined(name: str, options: argparse.Namespace) -> tuple[bool, str]:
    """Whether the results are the expected ones, and what to print; keeps them for the page."""
    target = TARGETS[name]
    if target.refused:
        found = {"refused": results.refusal(target.define()["make_env"])}
        _write(target, found)
        return bool(found["refused"]), found["refused"] or "Expected a refusal, got none"
    begin = time.monotonic()
    report = _report(target, options)
    unexpected = [r for r in report.results if r.status in ("failed", "errored")]
    lines = [f"{report.summary()} ({time.monotonic() - begin:.0f} s)"]
    lines += [f"  {result.check_id}: {result.status}: {result.message}" for result in unexpected]
    if options.seed:
        return not unexpected, "\n".join(lines)
    versions = {name: _version(name) for name in target.packages}
    _write(target, {**report.to_dict(), "versions": {**report.versions, **versions}})
    (BUILD / f"{name}.html").write_text(render(report, "html"), encoding="utf-8")
    return _as_expected(report), "\n".join(lines)


def _report(target: Target, given: argparse.Namespace) -> Report:
    defined = target.define()
    options = Options(
        seed=given.seed,
        programs=given.programs,
        max_seconds=given.max_seconds,
        expected_failures=target.expected(),
        make_env=target.source,
        capabilities=target.capabilities,
        options=target.options,
        reference=defined.get("reference"),
    )
    return run(defined["make_env"], options=options, target=target.about)


def _as_expected(report: Report) -> bool:
    return not any(result.status in ("failed", "errored", "xpassed") for result in report.results)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _write(target: Target, found: object) -> None:
    path = BUILD / f"{target.name}.json"
    path.write_text(json.dumps(found, indent=1, default=str), encoding="utf-8")
