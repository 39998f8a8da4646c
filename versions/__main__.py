"""Run the suite on every supported pair of versions, or other libraries' training scripts.

    python -m versions --only sb3-2.6 no-sb3
    python -m versions --python ~/python3.12/bin/python
    python -m versions --only real

`make pairs` runs the first kind, `make real` the scripts. Each has a virtual environment of its
own, so that any Python can run this. The results go into docs/reference/versions.md and
training-scripts.md. The exit status is 1 if a test failed, or if an environment could not be run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from pathlib import Path
from unittest.mock import patch

from tests.profiles import VARIABLE, profile
from tests.side_by_side import PYTEST, Ended, Part, run, suite, summary
from versions import stamps
from versions.install import NotInstalledError, install
from versions.libraries import LIBRARIES
from versions.pairs import Environment, environments
from versions.results import FILE, REFERENCE, Result, counts, pages, read, write

# The newest pair runs as many examples of each test as the profile says, the others only a few.
_NEWEST = [each for each in environments() if each.sb3][-1]
_FEW = [each for each in environments() if each != _NEWEST]

# The packages whose releases the pages name.
NAMED = ("stable-baselines3", "gymnasium", "numpy", "torch", "jax")


def main(arguments: Sequence[str], *, results: Path = FILE, reference: Path = REFERENCE) -> int:
    """Run the tests in the environments that were named, and write the results.

    Args:
        arguments: The command line.
        results: The file that keeps them.
        reference: The folder of the pages that show them.

    Returns:
        1 if not all of it passed, 2 if no environment has such a name.
    """
    options = _parser().parse_args(arguments)
    every = [*environments(), *LIBRARIES]
    named = tuple(options.only)
    chosen = [each for each in every if each.name.startswith(named)] if named else environments()
    if options.list or not chosen:
        print("\n".join(each.name for each in every))
        return 0 if options.list else 2
    ran: list[Environment] = []
    problems: list[str] = []
    for each in chosen:
        print(f"\n==== {each.name} ====", flush=True)
        try:
            python = install(each, options.python)
            with patch.dict(os.environ, {VARIABLE: "dev" if each in _FEW else profile()}):
                problems += _run(each, python, results)
            ran.append(each)
        except NotInstalledError as error:
            print(error, flush=True)
            problems.append(f"{each.name}: not run, see above")
        show(read(results), reference, ran)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m versions", description=__doc__)
    parser.add_argument("--list", action="store_true", help="show the environments, and run none")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME",
        help="those whose names begin with one; default: all that run the tests",
    )  # fmt: skip
    parser.add_argument(
        "--python", nargs="+", type=Path, default=[], metavar="PATH",
        help="interpreters to try before those on the path",
    )  # fmt: skip
    return parser


def _run(environment: Environment, python: Path, results: Path) -> list[str]:
    """Run the tests there and keep the result; what went wrong, if anything did."""
    start = time.monotonic()
    ended = run(_parts(environment, python))
    print(summary(ended), flush=True)
    found = result(ended, time.monotonic() - start, _versions(python))
    write({**read(results), environment.name: found}, results)
    if found.failed or any(each.returncode for each in ended):
        return [f"{environment.name}: {found.failed} failed, see above"]
    return []


def _parts(environment: Environment, python: Path) -> list[Part]:
    if not environment.library:
        return suite(python)
    script = f"tests/real/test_{environment.library}.py"
    return [Part(environment.name, (str(python), *PYTEST, script))]


def show(results: Mapping[str, Result], reference: Path, ran: Collection[Environment]) -> None:
    """Write the pages; one is of the present sources once all of its environments have run."""
    of_page = {"versions.md": environments(), "training-scripts.md": LIBRARIES}
    for name, text in pages(results).items():
        stamps.write(reference / name, text, whole={*of_page[name]} <= {*ran})


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
named = {{name: found[name] for name in {NAMED} if name in found}}
print(json.dumps({{**named, "Python": platform.python_version()}}))
"""
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
