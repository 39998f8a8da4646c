"""Start a worker process: in a fresh interpreter, or as `multiprocessing` does."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from sb3compat._convert.types import ProcessLike
from sb3compat._parallel.parts import EnvFn
from sb3compat._parallel.serve import serve

# What the fresh interpreter runs; the user's own main module is not imported.
_CODE = "import sys; sys.path[:] = {path!r}; from {module} import main; main({number})"


class FreshProcess:
    """A process that runs a new interpreter, with the methods of a `multiprocessing.Process`.

    Args:
        number: The file descriptor of the worker's end of its pipe.
    """

    def __init__(self, number: int) -> None:
        code = _CODE.format(path=sys.path, module=serve.__module__, number=number)
        self._popen = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.DEVNULL, pass_fds=[number]
        )
        self._pidfd: int | None = None
        if hasattr(os, "pidfd_open"):
            with suppress(OSError):  # a sandbox without it
                self._pidfd = os.pidfd_open(self._popen.pid)

    def watch(self, pipe: Connection[Any, Any]) -> None:
        """Go by the end of this pipe where the system does not tell the end of a process."""
        if self._pidfd is None:
            self._pidfd = os.dup(pipe.fileno())

    @property
    def sentinel(self) -> int:
        """Ready when the process has ended."""
        assert self._pidfd is not None
        return self._pidfd

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._popen.pid

    @property
    def exitcode(self) -> int | None:
        """How it has ended; None as long as it runs."""
        return self._popen.poll()

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._popen.poll() is None

    def terminate(self) -> None:
        """Ask the process to end."""
        self._popen.terminate()

    def kill(self) -> None:
        """End the process."""
        self._popen.kill()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the process has ended."""
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(timeout)

    def close(self) -> None:
        """Give up what the process's end is told by."""
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None


def start_methods() -> list[str]:
    """What `start_method` may be, besides None."""
    return multiprocessing.get_all_start_methods()


def launch(
    start_method: str | None, env_fns: Sequence[EnvFn], others: Sequence[Connection[Any, Any]]
) -> tuple[Connection[Any, Any], ProcessLike, bool]:
    """Start a worker.

    Args:
        start_method: One of `multiprocessing`; None for a fresh interpreter, where there is a way
            to hand it a pipe, and `"spawn"` elsewhere.
        env_fns: The functions that make its parts.
        others: The parent's ends of other workers' pipes.

    Returns:
        The parent's end of its pipe, the process, and whether the process has the functions.
    """
    ours, theirs = multiprocessing.Pipe()
    try:
        if start_method is None and sys.platform != "win32":
            fresh = FreshProcess(theirs.fileno())
            fresh.watch(ours)
            return ours, fresh, False
        context: Any = multiprocessing.get_context(start_method or "spawn")
        forks = start_method == "fork"
        arguments = (theirs, env_fns, [*others, ours]) if forks else (theirs,)
        process = context.Process(target=serve, args=arguments)
        process.start()
        return ours, process, forks
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
