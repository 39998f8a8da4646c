"""Run the kit on the world: `make conformance`.

It checks all targets, or the named ones, and writes RESULTS.md. With another `--seed` than 0 it
draws other programs, says what came out, and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from fnmatch import fnmatch
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from conformance import results
from conformance.targets import TARGETS, Target
from sb3compat.conformance.output import render
from sb3compat.conformance.run.entry import run
from sb3compat.conformance.run.options import Options
from sb3compat.conformance.run.report import Report
from versions import stamps

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "conformance"
# Without its cache JAX compiles for each of hundreds of instances, which takes seconds.
CACHE = {
    "JAX_COMPILATION_CACHE_DIR": str(BUILD / "jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
}


def main() -> int:
    """Check the chosen targets; 1 if a result is not the expected one."""
    options = _parser().parse_args()
    chosen = [
        target
        for target in TARGETS.values()
        if not options.names or any(fnmatch(target.name, name) for name in options.names)
    ]
    if options.list or not chosen:
        print("\n".join(f"{target.name}: {target.about}" for target in TARGETS.values()))
        return 0 if options.list else 2
    BUILD.mkdir(parents=True, exist_ok=True)
    os.environ.update(CACHE)
    clean = [_check(target, options) for target in chosen]
    if not options.seed:
        _write_page(whole=not options.names)
    return 0 if all(clean) else 1


def _write_page(*, whole: bool) -> None:
    path, text = HERE / "RESULTS.md", results.page(_read())
    if text is None:
        print(f"{path.name} is written when all targets have been run.")
    else:
        stamps.write(path, text, whole=whole)
        print(f"Written: {path}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="run these targets only; * and ? stand for others"
    )
    parser.add_argument("--list", action="store_true", help="show all targets, and run none")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the programs")
    parser.add_argument(
        "--programs", type=int, metavar="N", help="for each check (default: by its pace)"
    )
    parser.add_argument("--max-seconds", type=float, metavar="S", help="for one run")
    return parser


def _check(target: Target, options: argparse.Namespace) -> bool:
    """Whether the results are the expected ones; keeps them for the page."""
    print(f"{target.name}: ", end="", flush=True)
    if target.refused:
        found = {"refused": results.refusal(target.define()["make_env"])}
        _write(target, found)
        print(found["refused"] or "Expected a refusal, got none")
        return bool(found["refused"])
    report = _report(target, options)
    print(report.summary())
    if options.seed:
        return not any(r.status in ("failed", "errored") for r in report.results)
    versions = {name: _version(name) for name in target.packages}
    _write(target, {**report.to_dict(), "versions": {**report.versions, **versions}})
    (BUILD / f"{target.name}.html").write_text(render(report, "html"), encoding="utf-8")
    return _as_expected(report)


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
    report = run(defined["make_env"], options=options, target=target.about)
    for result in report.results:
        if result.status in ("failed", "errored"):
            print(f"\n  {result.check_id}: {result.status}: {result.message}", flush=True)
    return report


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


def _read() -> dict[str, results.Found]:
    """The results of this and earlier runs, by target."""
    paths = {name: BUILD / f"{name}.json" for name in TARGETS}
    return {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name, path in paths.items()
        if path.exists()
    }


if __name__ == "__main__":
    sys.exit(main())
