"""Run every check on every mutant and on what is correct, and write the kill matrix.

    make matrix
    make matrix ARGS="--only ResetsTwice Alike"
    make matrix ARGS=--page

`--only` runs the environments with these names, and takes the others from the last run. `--page`
runs none and writes the page anew.
"""

from __future__ import annotations

import argparse
import gc
import sys
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from conformance.in_turn import usable_processors
from conformance.matrix.outcomes import Outcome, Outcomes, examine_all, problems, up_to_date
from conformance.matrix.page import page
from conformance.matrix.record import OUTCOMES, REFERENCE, read, write
from conformance.matrix.sections import Section, sections
from conformance.specimens.registry import Specimen
from versions import stamps

PAGE = "kill-matrix.md"
Pairs = list[tuple[Section, Specimen]]


def chosen(everything: Pairs, names: Sequence[str], last: Outcomes) -> Pairs:
    """The environments with these names, where the last run has the outcomes of all others.

    Raises:
        ValueError: If there is no environment of a name, or no outcome of another one.
    """
    if unknown := set(names) - {specimen.name for _, specimen in everything}:
        raise ValueError(f"Expected names of environments, got {', '.join(sorted(unknown))}.")
    others = (pair for pair in everything if pair[1].name not in names)
    if missing := [one.name for section, one in others if not up_to_date(section, one, last)]:
        raise ValueError(f"The last run did not run all checks on {', '.join(missing[:5])}.")
    return [pair for pair in everything if pair[1].name in names]


# What the worker processes examine; they are forks, as mutants and factories cannot be sent.
_wanted: list[tuple[Section, Specimen]] = []


def run(wanted: Pairs, outcomes: Outcomes, jobs: int) -> None:
    """Run the checks on these environments, some at once; prints how far it is."""
    _wanted[:] = wanted
    # A check collects garbage: not through all that has been imported so far, each time.
    gc.collect()
    gc.freeze()
    try:
        with ProcessPoolExecutor(jobs, get_context("fork")) as pool:
            for number, outcome in enumerate(pool.map(_examine, range(len(wanted)))):
                section, specimen = wanted[number]
                outcomes.setdefault(section.key, {})[specimen.name] = outcome
                killed = ", ".join(sorted(outcome.killed)) or "nothing"
                place = f"{number + 1:{len(str(len(wanted)))}}/{len(wanted)}"
                print(f"{place} {section.title}: {specimen.name} is killed by {killed}", flush=True)
    finally:
        gc.unfreeze()


def _examine(number: int) -> Outcome:
    return examine_all(*_wanted[number])


def main(arguments: Sequence[str] | None = None, reference: Path = REFERENCE) -> int:
    """Write it all; 1 if a mutant survives a check that is aimed at it, or another one kills it."""
    parser = _parser()
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    path = reference / OUTCOMES
    found = sections()
    wanted = everything = [(section, each) for section in found for each in section.specimens]
    outcomes: Outcomes = {}
    if args.only or args.page:
        outcomes = read(path)
        try:
            wanted = chosen(everything, args.only or (), outcomes)
        except ValueError as error:
            parser.error(str(error))
    if wanted:
        run(wanted, outcomes, usable_processors())
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, found, outcomes)
    stamps.write(reference / PAGE, page(found, outcomes), whole=wanted == everything)
    wrong = problems(found, outcomes)
    for problem in wrong:
        print(problem, file=sys.stderr)
    return 1 if wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m conformance.matrix")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", nargs="+", metavar="NAME", help="some of the environments")
    which.add_argument(
        "--page", action="store_true", help="none: the page, from the outcomes of the last run"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
