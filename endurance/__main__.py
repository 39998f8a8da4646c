"""Run all parts, and write the page: `make endurance`.

python -m endurance
python -m endurance --steps 100_000 --faults 50 --page /tmp/page.md
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from endurance.faults import KINDS
from endurance.page import page
from endurance.soak import SOURCES
from tests.interrupts import HANG_SECONDS
from versions import stamps

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "how-it-holds-up.md"
# How long a part may take, in seconds.
MOST = 900


def part(module: str, *arguments: Any) -> Any:
    """What a part has found; it and all that it has started end with it."""
    print(module, *arguments, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found.json"
        command = [sys.executable, "-W", "ignore", "-m", f"endurance.{module}"]
        command += [*map(str, arguments), str(found)]
        with subprocess.Popen(command, start_new_session=True) as process:
            try:
                process.wait(MOST)
            finally:
                with suppress(ProcessLookupError):  # nothing of it is left
                    os.killpg(process.pid, signal.SIGKILL)
        if process.returncode:
            raise SystemExit(f"endurance.{module} {arguments} has ended with {process.returncode}.")
        return json.loads(found.read_text())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m endurance", description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000_000, help="of rows, over all sources")
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--page", type=Path, default=PAGE)
    args = parser.parse_args()
    started = time.monotonic()
    soak = {name: part("soak", name, args.steps) for name in SOURCES}
    faults = {backend: part("faults", backend, args.faults) for backend in KINDS}
    seconds = time.monotonic() - started
    stamps.write(args.page, page(soak, faults, HANG_SECONDS, seconds))
    wrong = [text for one in faults.values() for text in one["wrong"]]
    print(*wrong, f"{args.page}, in {seconds:.0f} seconds", sep="\n")
    return min(len(wrong), 1)


if __name__ == "__main__":
    sys.exit(main())
