"""What the conversion costs, as ratios to the obvious alternative.

    make bench                                           # all of it, into benchmarks/RESULTS.md
    make bench ARGS="--only native infos --rounds 31"
    make bench ARGS="--read --write"                     # the same numbers once more

The two sides of a row take turns in short blocks within one run, so that a busy machine slows both;
the ratio is the median over the rounds. Compare ratios, never times from different runs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Nothing else up here: the worker processes import this module.
if TYPE_CHECKING:
    from measure import Row

PACKAGES = ("gymnasium", "stable-baselines3", "numpy", "torch")
ROOT = Path(__file__).parents[1]
TABLE, JSON, FIGURE = "benchmarks/RESULTS.md", "docs/performance.json", "docs/performance.svg"
HEAD = """| what | n | sb3compat | compared with | the other | ratio | aim | met |
|---|--:|--:|---|--:|--:|--:|---|"""


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=15, help="blocks for each side of a row")
    parser.add_argument("--only", nargs="+", metavar="TOPIC", help="some topics instead of all")
    parser.add_argument("--write", action="store_true", help=f"into {TABLE}, {JSON} and {FIGURE}")
    parser.add_argument("--read", action="store_true", help=f"measure nothing, but take {JSON}")
    parser.add_argument("--parts", action="store_true", help="where the time goes, instead")
    return parser.parse_args()


def measure(args: argparse.Namespace) -> Iterator[Row]:
    import torch
    from cases import TOPICS

    torch.set_num_threads(1)
    for topic in args.only or TOPICS:
        yield from TOPICS[topic](args.rounds)


def read() -> Iterator[Row]:
    from measure import Row

    return (Row(**row) for row in json.loads((ROOT / JSON).read_text())["rows"])


def line(row: Row) -> str:
    """A line of the table, in Markdown."""
    digits = 0 if row.unit == "frames/s" else 1
    values = [f"{value:,.{digits}f} {row.unit}" for value in (row.ours, row.theirs)]
    aim = "" if row.aim is None else f"{row.aim:.2f}"
    met = "" if row.aim is None else "yes" if round(row.ratio, 2) <= row.aim else "no"
    return (
        f"| {row.what} | {row.n} | {values[0]} | {row.other} | {values[1]} "
        f"| {row.ratio:.2f} | {aim} | {met} |"
    )


def machine() -> dict[str, Any]:
    versions = {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    return {"system": platform.system(), "cores": os.cpu_count(), "versions": versions}


def main() -> None:
    args = parse()
    if args.parts:
        from parts import show

        show()
        return
    print(HEAD)
    rows = []
    for row in read() if args.read else measure(args):
        print(line(row), flush=True)
        rows.append(row)
    print("\nratio: sb3compat's time or memory by the other's; 0.5 is half the time for each frame")
    if args.write:
        write(rows)


def write(rows: list[Row]) -> None:
    from plot import draw

    results = {"machine": machine(), "rows": [asdict(row) for row in rows]}
    (ROOT / JSON).write_text(json.dumps(results, indent=1) + "\n")
    draw(rows, ROOT / FIGURE, os.cpu_count() or 1)
    page = ROOT / TABLE
    before, _, rest = page.read_text().partition(HEAD)
    after = rest.partition("\n\n")[2]
    table = "\n".join([HEAD, *map(line, rows)])
    page.write_text(f"{before}{table}\n\n{after}")


if __name__ == "__main__":
    main()
