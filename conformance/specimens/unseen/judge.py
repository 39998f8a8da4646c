"""Run the kit on the environments here, whose author had not read its checks: UNSEEN.md.

    python -m conformance.specimens.unseen.judge
    python -m conformance.specimens.unseen.judge LostLastReward OddInfos

Each is checked with the default options and without a reference; a broken one that has single
environments once more with these. The page is written when all have been run.
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from conformance.in_turn import usable_processors
from conformance.specimens import unseen
from conformance.specimens.registry import Specimen, specimens
from sb3compat.conformance.output.markdown import escaped
from sb3compat.conformance.run.entry import run
from sb3compat.conformance.run.options import Options
from versions import stamps

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "UNSEEN.md"
BUILD = HERE.parents[2] / "build" / "unseen"
assert unseen.MODULES, "they have to be imported before `specimens` is asked"
BROKEN = {each.name: each for each in specimens("unseen") if each.broken}
CORRECT = {each.name: each for each in specimens("unseen") if not each.broken}
# The page says how many of the broken ones are found, and that no correct one is reported.
_HEAD = """\
# Environments that the checks were not written for

Forty broken and forty correct environments were written from the contracts of both interfaces by an
author who had not read the checks or the mutants. In the first run, the kit missed 2 of the 30
broken ones that can be found without a reference, and reported 4 correct ones; the kit was then
fixed. Twenty broken ones had the same defect as a mutant, and 22 correct ones resembled others that
the kit is tested on; these were removed. The page lists the rest:
[`specimens/unseen/`](specimens/unseen). Each was checked with the default options. This page is
generated: `python -m conformance.specimens.unseen.judge`.
"""


def main(arguments: list[str]) -> int:
    """Judge those that were named, or all; 1 if a correct one is reported."""
    parser = argparse.ArgumentParser(prog="python -m conformance.specimens.unseen.judge")
    parser.add_argument("names", nargs="*", metavar="NAME", help="these only")
    names = parser.parse_args(arguments).names
    everything = BROKEN | CORRECT
    if unknown := set(names) - everything.keys():
        parser.error(f"Expected names of environments, got {', '.join(sorted(unknown))}.")
    BUILD.mkdir(parents=True, exist_ok=True)
    reported = 0
    with ProcessPoolExecutor(usable_processors(), get_context("spawn")) as pool:
        running = {pool.submit(judge, name): name for name in names or everything}
        for each in as_completed(running):
            name, found = running[each], each.result()
            (BUILD / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
            print(f"{name}: {found}", flush=True)
            reported += name in CORRECT and bool(falsely(name, found))
    results = {
        name: json.loads(path.read_text())
        for name in everything
        if (path := BUILD / f"{name}.json").exists()
    }
    if results.keys() == everything.keys():
        stamps.write(PAGE, page(results), whole=not names)
        print(f"Written: {PAGE.name}")
    return 1 if reported else 0


def judge(name: str) -> dict[str, Any]:
    """The checks that fail, and those that warn; with a reference, too, where there is one."""
    entry = (BROKEN | CORRECT)[name]
    failed, warned = _judged(entry, None)
    found = {"failed": failed, "warned": warned, "with_reference": []}
    if entry.broken and entry.reference:
        found["with_reference"] = _judged(entry, entry.reference)[0]
    return found


def falsely(name: str, found: dict[str, Any]) -> list[str]:
    """The checks that report a mistake that a correct environment does not have."""
    return [check for check in found["failed"] if check not in CORRECT[name].rightly]


def _judged(entry: Specimen, reference: list[Any] | None) -> tuple[list[str], list[str]]:
    report = run(entry.factory, options=Options(reference=reference), target=entry.name)
    failed = [result.check_id for result in report.failures()]
    warned = [r for r in report.results if r.severity == "warning" and r.status == "failed"]
    return failed, [result.check_id for result in warned]


def page(results: dict[str, dict[str, Any]]) -> str:
    """The page, of the results of all."""
    fixed = [name for name, each in BROKEN.items() if not each.untold]
    others = [name for name in BROKEN if name not in fixed]
    only_warned = {name for name in BROKEN if _is_warned(name, results[name])}
    found = {name for name in BROKEN if results[name]["failed"]} | only_warned
    named = {name for name in BROKEN if results[name]["with_reference"]}
    failed = [name for name in CORRECT if results[name]["failed"]]
    reported = [name for name in CORRECT if falsely(name, results[name])]
    lines = [
        _HEAD,
        f"- Of the {len(fixed)} broken ones that contradict the contract or themselves, "
        f"{len(found & {*fixed})} are found without a reference, "
        f"{len(only_warned & {*fixed})} of them by a warning only.",
        f"- Of the {len(others)} whose mistake shows only beside their single environments, "
        f"{len(found & {*others})} are found without a reference, and "
        f"{len((found | named) & {*others})} with it.",
        f"- Of the {len(CORRECT)} that their author takes for correct, {len(reported)} are "
        f"reported wrongly, and {len(failed) - len(reported)} correctly, as the table says.\n",
        "## Broken\n",
        "| | What is wrong | Can be told without a reference | Failed checks |",
        "|---|---|---|---|",
    ]
    for name, each in BROKEN.items():
        told = f"no: {each.untold}" if each.untold else "yes"
        checks = _ids(results[name]["failed"])
        if name in only_warned:
            checks = "a warning: " + _ids(sorted(each.fails))
        elif not results[name]["failed"] and name in named:
            checks = "with a reference: " + _ids(results[name]["with_reference"])
        about = " ".join(each.about.split())
        lines.append(f"| {name} | {escaped(about)} | {escaped(told)} | {checks or 'none'} |")
    lines += ["\n## Correct\n", "| | What it is | Failed checks |", "|---|---|---|"]
    for name, right in CORRECT.items():
        about = " ".join(right.about.split())
        checks = "; ".join(
            f"`{check}`" + (f", really: {right.rightly[check]}" if check in right.rightly else "")
            for check in results[name]["failed"]
        )
        lines.append(f"| {name} | {escaped(about)} | {checks or 'none'} |")
    return "\n".join(lines) + "\n"


def _is_warned(name: str, found: dict[str, Any]) -> bool:
    return not found["failed"] and bool(BROKEN[name].fails & set(found["warned"]))


def _ids(checks: list[str]) -> str:
    return ", ".join(f"`{check}`" for check in checks)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
