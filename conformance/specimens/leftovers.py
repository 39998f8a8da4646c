"""Threads, processes, shared memory and infos that mutants of both interfaces leave behind."""

from __future__ import annotations

import multiprocessing
import threading
from multiprocessing.shared_memory import SharedMemory
from typing import Any


class ThreadLeft:
    """Has a thread that waits for work for ever."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        threading.Thread(target=threading.Event().wait, daemon=True).start()


class ProcessLeft:
    """Has a process that waits for work."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.ours, theirs = multiprocessing.Pipe()
        # By a fork, and not for ever: a run makes dozens of these.
        context = multiprocessing.get_context("fork")
        context.Process(target=_wait, args=(theirs,), daemon=True).start()


def _wait(pipe: Any) -> None:
    pipe.poll(20)


class SharedMemoryLeft:
    """Has shared memory that its `close` lets go of, and does not remove."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.memory = SharedMemory(create=True, size=64)

    def close(self, **kwargs: Any) -> None:
        super().close(**kwargs)  # type: ignore[misc]
        self.memory.close()
