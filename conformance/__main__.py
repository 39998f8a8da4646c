"""Run the kit on the world: `make conformance`.

It checks all targets, or the named ones, and writes RESULTS.md. With `--seeds` it checks the
targets that must be clean, once for each seed, and writes SEEDS.md.
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
from conformance.age import kit, stamped
from conformance.targets import TARGETS, Target
from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.output import render
from sb3compat.conformance.run.entry import run
from sb3compat.conformance.run.options import Options
from sb3compat.conformance.run.report import Report

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "conformance"
# Twenty seeds take long even so.
SEED_PROGRAMS = 3
TRAINING = ("trains_ppo", "trains_off_policy")
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
        if (not options.names or any(fnmatch(target.name, name) for name in options.names))
        and (target.by_seeds or not options.seeds)
    ]
    if options.list or not chosen:
        print("\n".join(f"{target.name}: {target.about}" for target in TARGETS.values()))
        return 0 if options.list else 2
    BUILD.mkdir(parents=True, exist_ok=True)
    os.environ.update(CACHE)
    check = _over_seeds if options.seeds else _once
    clean = [check(target, options) for target in chosen]
    path, text = (
        (HERE / "SEEDS.md", results.seeds(_read("seeds")))
        if options.seeds
        else (HERE / "RESULTS.md", results.page(_read("json")))
    )
    if text is None:
        print(f"{path.name} is written when all targets have been run.")
    else:
        path.write_text(stamped(text, kit()), encoding="utf-8", newline="\n")
        print(f"Written: {path}")
    return 0 if all(clean) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="run these targets only; * and ? stand for others"
    )
    parser.add_argument("--list", action="store_true", help="show all targets, and run none")
    parser.add_argument(
        "--seeds",
        type=int,
        default=0,
        metavar="N",
        help="run those that must be clean N times",
    )
    parser.add_argument(
        "--programs", type=int, metavar="N",
        help=f"for each check (default: by its pace, with --seeds {SEED_PROGRAMS})",
    )  # fmt: skip
    parser.add_argument("--max-seconds", type=float, metavar="S", help="for one run")
    return parser


def _once(target: Target, options: argparse.Namespace) -> bool:
    print(f"{target.name}: ", end="", flush=True)
    if target.refused:
        found = {"refused": results.refusal(target.define()["make_env"])}
        _write(target, "json", found)
        print(found["refused"] or "Expected a refusal, got none")
        return bool(found["refused"])
    report = _report(target, 0, options.programs, options.max_seconds)
    print(report.summary())
    versions = {name: _version(name) for name in target.packages}
    _write(target, "json", {**report.to_dict(), "versions": {**report.versions, **versions}})
    (BUILD / f"{target.name}.html").write_text(render(report, "html"), encoding="utf-8")
    return _as_expected(report)


def _over_seeds(target: Target, options: argparse.Namespace) -> bool:
    reports = []
    for seed in range(options.seeds):
        reports.append(
            _report(target, seed, options.programs or SEED_PROGRAMS, options.max_seconds)
        )
        print(f"{target.name}, seed {seed}: {reports[-1].summary()}", flush=True)
        _write(target, "seeds", results.over_seeds(reports))
    return not any(r.status in ("failed", "errored") for report in reports for r in report.results)


def _report(target: Target, seed: int, programs: int | None, max_seconds: float | None) -> Report:
    defined = target.define()
    # Training takes most of the time, and is much the same under each seed.
    quick = tuple(check.id for check in checks_of() if check.id not in TRAINING)
    options = Options(
        seed=seed,
        programs=programs,
        max_seconds=max_seconds,
        only=quick if seed else (),
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


def _write(target: Target, kind: str, found: object) -> None:
    path = BUILD / f"{target.name}.{kind}"
    path.write_text(json.dumps(found, indent=1, default=str), encoding="utf-8")


def _read(kind: str) -> dict[str, results.Found]:
    """The results of this and earlier runs, by target."""
    paths = {name: BUILD / f"{name}.{kind}" for name in TARGETS}
    return {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name, path in paths.items()
        if path.exists()
    }


if __name__ == "__main__":
    sys.exit(main())
