"""Run the suite in a few pytest processes side by side: `make test`.

    python -m tests.side_by_side
    python -m tests.side_by_side lint demo

The second one also runs `make lint` and the short demo beside the tests, as `.ci/run` does. What
a process prints is shown when it ends; the exit status is 1 if one of them failed.

pytest-xdist cannot be used: its workers have threads, and a process with threads must not fork,
as `AsyncVectorEnv` does.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
KIT, THERE, WORKERS = "tests/conformance", "tests/to_sb3", "tests/parallel"
ROOMS = sorted(
    path.parent.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/*/__init__.py")
)
# Those that have a process of their own, and the scripts of other libraries, of which each has an
# environment of its own: `make real`.
OTHERS = (KIT, THERE, WORKERS, "tests/real")
# JAX and Ray start threads, and a process with threads must not fork. The tests that bring them in
# are in these folders, and `conftest` puts them last.
LAST = {"jax": ("tests/to_gymnasium", THERE), "ray": (WORKERS,)}
# Together they are the suite: each test is in exactly one. Several processes must not write one
# cache. Ray's tests wait long for its actors, so they have a process of their own.
SUITE = {
    "to_sb3": (THERE,),
    "kit": (KIT,),
    "adapters": tuple(room for room in ROOMS if room not in OTHERS),
    "ray": ("-m", "ray", WORKERS),
    "workers": ("-m", "not ray", WORKERS),
    "whole": (*(f"--ignore={room}" for room in ROOMS), "tests"),
}
PYTEST = ("-m", "pytest", "-p", "no:cacheprovider")
BESIDE = {"lint": ("make", "lint"), "demo": ("make", "demo", "ARGS=--short")}


@dataclass(frozen=True)
class Part:
    """A command that runs beside others."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Ended:
    """A command that has run."""

    name: str
    returncode: int
    seconds: float
    output: str

    @property
    def last_line(self) -> str:
        """Of pytest's output, its summary: `7 passed in 2.95s`."""
        return self.output.rstrip().rpartition("\n")[2].strip("= ")


def suite(python: str | Path = sys.executable) -> list[Part]:
    """The tests with this interpreter, the longest part first."""
    return [Part(name, (str(python), *PYTEST, *arguments)) for name, arguments in SUITE.items()]


def run(parts: Sequence[Part], slots: int | None = None) -> list[Ended]:
    """Run the parts, and print what each has printed as soon as it ends.

    Args:
        parts: What is run; those that come first are started first.
        slots: How many run at once; default: three more than there are processors, as tests wait
            for processes that start, hang or end.
    """
    with ThreadPoolExecutor(slots or _processors() + 3) as pool:
        return list(pool.map(_run_one, parts))


def _compile_modules() -> None:
    """Import what the tests import: all parts at once would each compile it for themselves."""
    command = (sys.executable, *PYTEST, "--collect-only", "-q", "tests")
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)


def _run_one(part: Part) -> Ended:
    print(f"{part.name}: started", flush=True)
    start = time.monotonic()
    # Ctrl-C reaches the process from the terminal.
    done = subprocess.run(
        part.command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    print(f"\n---- {part.name} ----\n{done.stdout.strip()}\n", flush=True)
    return Ended(part.name, done.returncode, time.monotonic() - start, done.stdout)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def summary(ended: Sequence[Ended]) -> str:
    """A line for each part."""
    lines = []
    for each in ended:
        verdict = "ok" if each.returncode == 0 else f"FAILED, exit status {each.returncode}"
        lines.append(f"{each.name} ({each.seconds:.0f} s): {verdict}; {each.last_line}")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Run the suite and what was named; 1 if any of it failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.side_by_side", description=__doc__)
    parser.add_argument("beside", nargs="*", metavar="NAME", help="lint or demo: run beside it")
    names = parser.parse_args(arguments).beside
    if unknown := set(names) - BESIDE.keys():
        parser.error(f"Expected some of {', '.join(BESIDE)}, got {', '.join(sorted(unknown))}.")
    beside = [Part(name, BESIDE[name]) for name in names]
    try:
        with ThreadPoolExecutor() as pool:
            # mypy and ruff are compiled already.
            early = pool.submit(run, [part for part in beside if part.name == "lint"])
            _compile_modules()
            ended = run([*suite(), *(part for part in beside if part.name != "lint")])
            ended += early.result()
    except KeyboardInterrupt:
        return 130
    print(summary(ended))
    return 1 if any(each.returncode for each in ended) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
