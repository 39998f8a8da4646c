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
from conformance.matrix.record import (
    OUTCOMES,
    REFERENCE,
    Record,
    present,
    read,
    versions,
    write,
)
from conformance.matrix.sections import Section, sections
from conformance.specimens.registry import Specimen
from versions import stamps

PAGE = "kill-matrix.md"
Pairs = list[tuple[Section, Specimen]]


def named(everything: Pairs, names: Sequence[str]) -> Pairs:
    """The environments with these names.

    Raises:
        ValueError: If there is none of a name.
    """
    if unknown := set(names) - {specimen.name for _, specimen in everything}:
        raise ValueError(f"Expected names of environments, got {', '.join(sorted(unknown))}.")
    return [(section, specimen) for section, specimen in everything if specimen.name in names]


def must_be_known(others: Pairs, record: Record) -> None:
    """Refuse to take from the last run what it did not run.

    Raises:
        ValueError: If there are no outcomes of an environment.
    """
    missing = [one.name for section, one in others if not up_to_date(section, one, record.outcomes)]
    if missing:
        raise ValueError(f"The last run did not run all checks on {', '.join(missing[:5])}.")


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
    try:
        record = _record(args, path, found)
    except ValueError as error:
        parser.error(str(error))
    stamps.write(reference / PAGE, page(found, record), whole=record.digest == present())
    wrong = problems(found, record.outcomes)
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


def _record(args: argparse.Namespace, path: Path, found: list[Section]) -> Record:
    """The outcomes, after the environments that are asked for have been run.

    Raises:
        ValueError: If the last run does not have those of the others.
    """
    everything = [(section, specimen) for section in found for specimen in section.specimens]
    if not (args.only or args.page):
        return _run(path, found, everything, Record(versions(), present(), {}))
    last = read(path)
    wanted = named(everything, args.only or ())
    must_be_known([pair for pair in everything if pair not in wanted], last)
    # The outcomes of the others stay, and the record goes on to say of what they are.
    return _run(path, found, wanted, last) if wanted else last


def _run(path: Path, found: list[Section], wanted: Pairs, record: Record) -> Record:
    run(wanted, record.outcomes, usable_processors())
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, found, record)
    return read(path)


if __name__ == "__main__":
    sys.exit(main())
