"""Start a worker process: in a fresh interpreter, or as `multiprocessing` does."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.spawn import get_command_line
from typing import Any

from sb3compat._ipc.by_value import name_main_classes
from sb3compat._ipc.ready import Line
from sb3compat._parallel.parts import EnvFn
from sb3compat._parallel.serve import serve

# The program of the fresh interpreter; the user's main module is not imported.
_CODE = "import sys; sys.path[:] = {path!r}; from {module} import main; main{ends}"


def _command(*ends: int) -> list[str] | None:
    """The command of a fresh interpreter with the flags of this one; None if there is none."""
    command = get_command_line()
    if "-c" not in command:  # a program that embeds Python
        return None
    # Other flags do not affect imports.
    path = [entry for entry in sys.path if isinstance(entry, str)]
    code = _CODE.format(path=path, module=serve.__module__, ends=ends)
    return [*command[: command.index("-c")], "-c", code]


class FreshProcess(subprocess.Popen[bytes]):
    """A process that runs a new interpreter, with the methods of a `multiprocessing.Process`.

    Args:
        command: The command line.
        ends: The file descriptors of the worker's ends of its pipes.
        pipe: The parent's end. That it is closed shows the end of the process, where the system has
            no other sign.
    """

    def __init__(self, command: list[str], ends: Sequence[int], pipe: Connection[Any, Any]) -> None:
        super().__init__(command, stdin=subprocess.DEVNULL, pass_fds=ends)
        number = None
        if sys.platform == "linux":
            with suppress(AttributeError, OSError):  # an old system, or a sandbox without it
                number = os.pidfd_open(self.pid)
        self._sentinel = FileIO(os.dup(pipe.fileno()) if number is None else number)

    @property
    def sentinel(self) -> int:
        """Ready when the process has ended."""
        return self._sentinel.fileno()

    @property
    def exitcode(self) -> int | None:
        """The exit code; None while it runs."""
        return self.poll()

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self.poll() is None

    def join(self, timeout: float | None = None) -> None:
        """Wait until the process has ended."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(timeout)

    def close(self) -> None:
        """Close the descriptor that signals the end of the process; a second call has no effect."""
        self._sentinel.close()


@contextmanager
def signals_held() -> Iterator[None]:
    """Block the signals of this thread, and of the new process, while a worker is started.

    Ctrl-C would end an interpreter that does not ignore the signal yet. And an exception of a
    handler could lose the number of the process, which would stay as a zombie. If there are other
    threads, one of them may still handle the signal.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        try:
            # The handler of an earlier signal may raise out of this call, after it has blocked.
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    finally:
        # Again, as a signal that another thread has taken may raise before that call. Signals that
        # stay blocked would hide the end of every later worker.
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_helpers(start_method: str | None) -> None:
    """Start the helper processes of `multiprocessing`, with unblocked signals."""
    if sys.platform != "win32" and start_method in ("forkserver", "spawn"):
        resource_tracker.ensure_running()
        if start_method == "forkserver":
            forkserver.ensure_running()


def launch(
    start_method: str | None,
    env_fns: Sequence[EnvFn],
    notes: Connection[Any, Any] | None = None,
) -> Line:
    """Start a worker.

    Args:
        start_method: One of `multiprocessing`; None for a fresh interpreter if the system can pass
            a pipe to it, otherwise `"spawn"`.
        env_fns: The functions that make its parts.
        notes: The end of a pipe into which the worker writes which function it calls; None on
            Windows.

    Returns:
        The parent's end of its pipe, and the process. A fork has the functions.

    Raises:
        OSError: If the system has no descriptors, processes or memory left.
    """
    ours, theirs = multiprocessing.Pipe()
    try:
        ends = [pipe.fileno() for pipe in (theirs, notes) if pipe is not None]
        command = _command(*ends) if start_method is None else None
        if command is not None and sys.platform != "win32":
            return Line(ours, FreshProcess(command, ends, ours))
        context: Any = multiprocessing.get_context(start_method or "spawn")
        arguments: dict[str, Any] = {"pipe": theirs, "notes": notes}
        if start_method == "fork":
            name_main_classes()
            arguments |= {"env_fns": env_fns, "other": ours}
        process = context.Process(target=serve, kwargs=arguments)
        process.start()
        return Line(ours, process)
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
