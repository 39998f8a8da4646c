"""Run the suite on every supported pair of versions: `make pairs`.

    python -m versions --only sb3-2.6 no-sb3
    python -m versions --python ~/python3.12/bin/python

Each pair has a virtual environment of its own, so that any Python can run this. The results go into
docs/reference/versions.md. The exit status is 1 if a test failed on some pair, or if a pair could
not be run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from tests.profiles import profile
from tests.side_by_side import Ended, run, suite, summary
from versions.install import NotInstalledError, install
from versions.pairs import Environment, environments
from versions.results import FILE, PAGE, Result, counts, page, read, write

# The packages whose releases are told.
TOLD = ("stable-baselines3", "gymnasium", "numpy", "torch", "jax")


def main(arguments: Sequence[str], *, results: Path = FILE, shown: Path = PAGE) -> int:
    """Run the suite in the environments that were named, and write the results.

    Args:
        arguments: The command line.
        results: The file that keeps them.
        shown: The page that shows them.

    Returns:
        1 if not all of it passed, 2 if no environment has such a name.
    """
    options = _parser().parse_args(arguments)
    chosen = [each for each in environments() if each.name.startswith(tuple(options.only) or "")]
    if options.list or not chosen:
        print("\n".join(each.name for each in environments()))
        return 0 if options.list else 2
    problems = []
    for each in chosen:
        problem = _try(each, options.python, results)
        problems += [problem] if problem else []
        shown.write_text(page(environments(), read(results)), encoding="utf-8", newline="\n")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m versions", description=__doc__)
    parser.add_argument("--list", action="store_true", help="show the environments, and run none")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="those whose names begin with one"
    )
    parser.add_argument(
        "--python", nargs="+", type=Path, default=[], metavar="PATH",
        help="interpreters to try before those on the path",
    )  # fmt: skip
    return parser


def _try(environment: Environment, pythons: Sequence[Path], results: Path) -> str | None:
    """Run the suite there and keep the result; what went wrong, if anything did."""
    print(f"\n==== {environment.name} ====", flush=True)
    try:
        python = install(environment, pythons)
    except NotInstalledError as error:
        print(error, flush=True)
        return f"{environment.name}: not run, see above"
    start = time.monotonic()
    ended = run(suite(python))
    print(summary(ended), flush=True)
    found = result(ended, time.monotonic() - start, _versions(python))
    write({**read(results), environment.name: found}, results)
    if found.failed or any(each.returncode for each in ended):
        return f"{environment.name}: {found.failed} failed, see above"
    return None


def result(ended: Sequence[Ended], seconds: float, versions: dict[str, str]) -> Result:
    """The parts of the suite taken together."""
    found = sum((counts(each.last_line) for each in ended), Counter[str]())
    return Result(
        passed=found["passed"] + found["xfailed"],
        failed=found["failed"] + found["error"] + found["errors"],
        skipped=found["skipped"],
        seconds=round(seconds),
        profile=profile(),
        date=date.today().isoformat(),
        versions=versions,
    )


def _versions(python: Path) -> dict[str, str]:
    """The releases that are installed there."""
    script = f"""
import json, platform
from importlib.metadata import distributions
found = {{each.name.lower().replace("_", "-"): each.version for each in distributions()}}
told = {{name: found[name] for name in {TOLD} if name in found}}
print(json.dumps({{**told, "Python": platform.python_version()}}))
"""
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
