"""Run every check on every mutant and on what is correct, and write the kill matrix.

    make matrix
    make matrix ARGS="--only ResetsTwice Alike"
    make matrix ARGS=--draw

`--only` runs some environments and takes the others from the last run; `--draw` runs none.
"""

from __future__ import annotations

import argparse
import gc
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from conformance.matrix.outcomes import Outcomes, examine_all, problems, read, up_to_date, write
from conformance.matrix.page import page
from conformance.matrix.picture import picture
from conformance.matrix.specimens import Section, Specimen, sections

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
OUTCOMES = "kill-matrix/outcomes.json"

Pairs = list[tuple[Section, Specimen]]


def chosen(everything: Pairs, names: Sequence[str], outcomes: Outcomes) -> Pairs:
    """Those with these names.

    Raises:
        ValueError: If there is none of a name, or if there are no outcomes of another one.
    """
    if unknown := set(names) - {specimen.name for _, specimen in everything}:
        raise ValueError(f"Expected names of environments, got {', '.join(sorted(unknown))}.")
    others = [(section, one) for section, one in everything if one.name not in names]
    if missing := [one.name for section, one in others if not up_to_date(section, one, outcomes)]:
        raise ValueError(f"The last run did not run all checks on {', '.join(missing[:5])}.")
    return [(section, specimen) for section, specimen in everything if specimen.name in names]


def run(wanted: Pairs, outcomes: Outcomes) -> None:
    """Run these; says how far it is."""
    # A check collects garbage: not through all that has been imported so far, each time.
    gc.collect()
    gc.freeze()
    try:
        for number, (section, specimen) in enumerate(wanted, 1):
            outcome = examine_all(section, specimen)
            outcomes.setdefault(section.key, {})[specimen.name] = outcome
            killed = ", ".join(sorted(outcome.killed)) or "nothing"
            place = f"{number:{len(str(len(wanted)))}}/{len(wanted)}"
            print(f"{place} {section.title}: {specimen.name} is killed by {killed}", flush=True)
    finally:
        gc.unfreeze()


def files(
    found: list[Section], versions: dict[str, str], outcomes: Outcomes
) -> Iterator[tuple[str, str]]:
    """The names of what is drawn, and the texts."""
    yield "kill-matrix.md", page(found, versions, outcomes)
    for section in found:
        yield f"kill-matrix/{section.key}.svg", picture(section, outcomes[section.key])


def main(arguments: Sequence[str] | None = None, reference: Path = REFERENCE) -> int:
    """Write it all; 1 if a mutant survives what it is aimed at, or is not what it says."""
    parser = argparse.ArgumentParser(prog="python -m conformance.matrix")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", nargs="+", metavar="NAME", help="some of the environments")
    which.add_argument("--draw", action="store_true", help="from the outcomes of the last run")
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    path = reference / OUTCOMES
    found = sections()
    wanted = [(section, specimen) for section in found for specimen in section.specimens]
    outcomes: Outcomes = {}
    if args.only or args.draw:
        outcomes = read(path)[1]
        try:
            wanted = chosen(wanted, args.only or (), outcomes)
        except ValueError as error:
            parser.error(str(error))
    if not args.draw:
        run(wanted, outcomes)
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, found, outcomes)
    versions, outcomes = read(path)
    for name, text in files(found, versions, outcomes):
        (reference / name).write_text(text, encoding="utf-8", newline="\n")
    wrong = problems(found, outcomes)
    for problem in wrong:
        print(problem, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
