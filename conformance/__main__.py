"""Run the kit on the world: `make conformance`.

It checks all targets, or the named ones, and writes RESULTS.md. With another `--seed` than 0 it
draws other programs, says what came out, and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from fnmatch import fnmatch
from multiprocessing import get_context
from pathlib import Path

from conformance import results
from conformance.examined import BUILD, examined
from conformance.in_turn import usable_processors
from conformance.targets import TARGETS
from versions import stamps

HERE = Path(__file__).parent
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
    clean = True
    # One target keeps one processor busy.
    with ProcessPoolExecutor(usable_processors(), get_context("spawn")) as pool:
        running = {pool.submit(examined, target.name, options): target.name for target in chosen}
        for each in as_completed(running):
            try:
                as_expected, text = each.result()
            except Exception:  # the others still count
                as_expected, text = False, traceback.format_exc()
            clean &= as_expected
            print(f"{running[each]}: {text}", flush=True)
    if not options.seed:
        _write_page(whole=not options.names)
    return 0 if clean else 1


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
    parser.add_argument(
        "--max-seconds", type=float, default=300, metavar="S", help="for one target (default: 300)"
    )
    return parser


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
