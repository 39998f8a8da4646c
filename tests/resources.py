"""What a process and its descendants hold of the machine, as Linux shows it."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
# How the mappings of shared memory are called.
SHARED = ("/memfd:", "/dev/shm/")


class Held(NamedTuple):
    """What some processes hold together.

    Attributes:
        processes: How many there are.
        memory: The resident bytes; what several share counts in each.
        descriptors: The open file descriptors.
        threads: The threads.
        shared: The mapped bytes of shared memory.
    """

    processes: int = 0
    memory: int = 0
    descriptors: int = 0
    threads: int = 0
    shared: int = 0


def held(*more: int, alone: bool = False) -> Held:
    """What this process and its descendants hold, and those of `more` processes.

    Args:
        more: Processes that are no descendants.
        alone: Leave the descendants out.
    """
    gc.collect()
    found = [_held(pid) for pid in {os.getpid(), *more, *(() if alone else descendants())}]
    return Held(*(sum(column) for column in zip(*found, strict=True)))


def children_of(pid: int | str) -> list[int]:
    """The processes that one has started; none if it has ended."""
    folder = PROC / str(pid) / "task"
    while folder.exists():
        # A thread may end meanwhile, and leaves its children to another one.
        with suppress(FileNotFoundError, ProcessLookupError):
            tasks = list(folder.iterdir())
            return [
                int(child) for task in tasks for child in (task / "children").read_text().split()
            ]
    return []


def descendants(pid: int | str = "self") -> Iterator[int]:
    """The processes below one, as deep as they go."""
    for child in children_of(pid):
        yield child
        yield from descendants(child)


def _held(pid: int) -> Held:
    folder = PROC / str(pid)
    with suppress(OSError):  # it may end meanwhile
        pages = int((folder / "statm").read_text().split()[1])
        descriptors = len(list((folder / "fd").iterdir()))
        threads = len(list((folder / "task").iterdir()))
        return Held(1, pages * os.sysconf("SC_PAGE_SIZE"), descriptors, threads, _shared(folder))
    return Held()


def _shared(folder: Path) -> int:
    total = 0
    for line in (folder / "maps").read_text().splitlines():
        addresses, *_, path = line.split(maxsplit=5)
        if path.startswith(SHARED):
            start, stop = (int(part, 16) for part in addresses.split("-"))
            total += stop - start
    return total
