"""What a fork server imports for the workers that it starts."""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path

import pytest

from tests.interpreter import run

SCRIPT = """
import multiprocessing, sys
from tests.conformance.run.test_preloaded import look

if __name__ == "__main__":
    multiprocessing.set_forkserver_preload(["sb3compat.conformance.run.preloaded"])
    context = multiprocessing.get_context("forkserver")
    queue = context.SimpleQueue()
    for _ in range(2):
        context.Process(target=look, args=(queue,)).start()
    print(*[queue.get() for _ in range(2)], sep="\\n")
"""


def look(queue: multiprocessing.SimpleQueue[tuple[bool, float]]) -> None:
    """What a worker finds."""
    loaded = "gymnasium" in sys.modules
    import numpy as np

    queue.put((loaded, float(np.random.random())))


@pytest.mark.skipif(sys.platform == "win32", reason="needs a fork server")
def test_workers_find_libraries_imported_and_share_no_random_state(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = run(tmp_path / "script.py")
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.split("\n", 1)
    assert first.startswith("(True, ")
    assert second.startswith("(True, ")
    assert first != second.strip()
