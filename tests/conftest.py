from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Iterator

import pytest

from tests import costly, profiles
from tests.closing import OPENED, close_all
from tests.side_by_side import LAST

profiles.load()

pytest_plugins = ["pytester"]

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

# A shell's background job ignores Ctrl-C, and so does all that it starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    """The threads of EnvPool and ale-py, and workers, live on until the environment is closed."""
    before = len(OPENED)  # by fixtures of whole modules
    yield
    close_all(before)


def pytest_unconfigure() -> None:
    # Python waits for the workers that are left, which it has terminated. A worker that was forked
    # after a test had shown something with pygame survives that, by SDL's handler.
    for process in multiprocessing.active_children():
        process.kill()


def pytest_collection_finish() -> None:
    # What was imported stays. Looking through all of it again for garbage, in this process and in
    # each fork of it, takes longer than many of the tests.
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    out = costly.left_out((item.nodeid, item) for item in items)
    # Who names a test wants all of it.
    if out and not any("::" in argument for argument in config.args):
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]
    for item in items:
        for name, folders in LAST.items():
            if item.get_closest_marker(name) and not item.nodeid.startswith(folders):
                raise pytest.UsageError(
                    f"Expected tests with the mark {name} in {', '.join(folders)}, where they are "
                    f"put last; got {item.nodeid}. Move it there."
                )
    # JAX and Ray start threads, and a process with threads must not fork, which AsyncVectorEnv does
    # by default. So whatever brings in one of them comes last.
    items.sort(key=lambda item: any(map(item.get_closest_marker, LAST)))
