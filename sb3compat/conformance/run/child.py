"""Checks in a child process: an environment that hangs or dies costs one check, not the run.

The child is a fresh interpreter. A `multiprocessing` process would import the user's main module
once more, and with it the call that started it.
"""

from __future__ import annotations

import faulthandler
import math
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import IO, Any

import cloudpickle

from sb3compat.conformance.program.journal import read_journal
from sb3compat.conformance.program.trace import is_ours, trace_of
from sb3compat.conformance.run.wire import carried, receive, send
from sb3compat.conformance.subject.settings import Settings

# Called with what is going on.
Tell = Callable[[str], None]

_START = "from sb3compat.conformance.run.runner import serve; serve()"
# To start the interpreter and import the modules of the factory.
START_SECONDS = 120.0
# How often to look whether the process goes on.
_TICK = 0.25
# How often to look for the stack of a process that hangs.
_LOOKS, _LOOKS_EVERY = 40, 0.05


class ChildFailureError(Exception):
    """The child process hung or died.

    Args:
        message: Which of the two.
        stack: Its stack, the innermost call first; empty if unknown.
        cause: The signal or the exit code that it died of; empty if it hung.
        silent: For how many seconds nothing was heard of it.
        lines: The program that it was running.
    """

    def __init__(
        self,
        message: str,
        stack: str = "",
        *,
        cause: str = "",
        silent: float = 0.0,
        lines: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.stack, self.cause, self.silent, self.lines = stack, cause, silent, lines


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads its own session, and all that it has started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def cause_of_death(code: int) -> str:
    """The name of the signal that ended a process, or its exit code."""
    try:
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"
    except ValueError:
        return f"signal {-code}"


class ChildTraceback(Exception):  # noqa: N818  (it is a cause, never raised)
    """The traceback of an exception that came from the child process."""

    def __str__(self) -> str:
        return f"in the process that runs the checks\n{self.args[0]}"


def factory_trace(error: Exception) -> str:
    """The traceback of an exception of a factory, here or in a child."""
    cause = error.__cause__
    text: str = cause.args[0] if isinstance(cause, ChildTraceback) else trace_of(error)
    return text.rstrip()


class Child:
    """A process that runs checks.

    The output of the environment goes into a file; its last lines are shown if the process dies.

    Args:
        tell: Called with what is going on, and without a text while that goes on.
    """

    def __init__(self, tell: Tell = lambda text: None) -> None:
        self._tell = tell
        handle, name = tempfile.mkstemp(prefix="sb3compat-", suffix=".log")
        self._log = Path(name)
        self._journal = self._log.with_suffix(".journal")
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=handle,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )
        os.close(handle)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin = self._process.stdin
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(
            target=_collect, args=(self._process.stdout, self._answers), daemon=True
        ).start()

    def ask(
        self, method: str, *arguments: object, seconds: float, silence: float = math.inf
    ) -> Any:
        """Call a method of the `Runner` in the process; returns what that returns.

        Args:
            method: Its name.
            arguments: Its arguments.
            seconds: The time limit.
            silence: The time limit for a sign of life: a statement, or what `tell` is called with.

        Raises:
            ChildFailureError: If it takes longer, or the process dies.
            Exception: What the method raises.
        """
        try:
            send(self._stdin, cloudpickle.dumps((method, carried(*arguments))))
            answer = self._answer(seconds, silence)
        except OSError:
            answer = None
        if answer is None:
            cause = cause_of_death(self._process.wait())
            log = self._log.read_text(errors="replace")
            lines = self._program()
            raise ChildFailureError(_how(cause, log), stack_in(log), cause=cause, lines=lines)
        kind, value = answer
        if kind == "raised":
            error, trace = value
            raise error from ChildTraceback(trace)
        return value

    def journaling(self, settings: Settings) -> Settings:
        """Settings with which the process writes down its statements."""
        self._journal.unlink(missing_ok=True)
        return replace(settings, journal=str(self._journal))

    def _program(self) -> list[str]:
        """The program that the process was running when it hung or died."""
        try:
            return read_journal(self._journal)
        except (OSError, ValueError, SyntaxError):
            return []

    def close(self) -> None:
        """End the process and all that it has started."""
        end(self._process)
        for stream in (self._stdin, self._process.stdout):
            with suppress(OSError):
                stream.close()  # type: ignore[union-attr]
        for path in (self._log, self._journal):
            with suppress(OSError):
                path.unlink()

    def _answer(self, seconds: float, silence: float) -> tuple[str, Any] | None:
        """The answer of the process, None if it has died.

        Raises:
            ChildFailureError: If there is none in time.
        """
        begin = heard = time.perf_counter()
        seen = self._written()
        while True:
            try:
                answer = self._answers.get(timeout=min(_TICK, seconds, silence))
            except queue.Empty:
                now = time.perf_counter()
                written = self._written()
                if written != seen:
                    seen, heard = written, now
                self._tell("")
                if now - begin >= seconds or now - heard >= silence:
                    waited = min(now - begin, now - heard)
                    log = self._log.read_text(errors="replace")
                    message = f"timeout: no answer within {waited:.0f} s{_guard_hint(log)}"
                    stack, lines = self._where(), self._program()
                    raise ChildFailureError(message, stack, silent=waited, lines=lines) from None
                continue
            if answer is None:
                return None
            kind, value = cloudpickle.loads(answer)
            if kind != "tell":
                return kind, value
            self._tell(value)
            heard = time.perf_counter()

    def _written(self) -> tuple[int, int]:
        """What changes when the program in the journal goes on."""
        try:
            found = self._journal.stat()
        except OSError:
            return 0, 0
        return found.st_mtime_ns, found.st_size

    def _where(self) -> str:
        """The stack of the process, which it prints on a signal."""
        if hasattr(faulthandler, "register"):
            self._process.send_signal(signal.SIGUSR1)
            for _ in range(_LOOKS):
                if stack := stack_in(self._log.read_text(errors="replace")):
                    return stack
                time.sleep(_LOOKS_EVERY)
        return ""


def _how(cause: str, log: str) -> str:
    """How the process died, and what it said before."""
    said = last_words(log)
    words = f"by {cause}" if cause.startswith("SIG") else f"with {cause}"
    last = f"; it last said: {' | '.join(said)}" if said else ""
    return f"crashed: the process has died {words}{last}{_guard_hint(log)}"


def _guard_hint(log: str) -> str:
    """What to do if a worker has run the script that starts it, of which Python has complained."""
    if "before the\n        current process has finished its bootstrapping phase" not in log:
        return ""
    return (
        "; a worker process has imported the script that starts it. Put what the script does "
        "behind 'if __name__ == \"__main__\":'"
    )


def stack_in(log: str) -> str:
    """The frames of the environment in the last stack, the innermost call first.

    A stack counts once the frames of the kit, which come last, are written too.
    """
    blocks = re.split(r"(?m)^(?:Current thread|Thread) 0x\w+.*\n", log)
    frames = next((b for b in reversed(blocks) if re.search(r'" ?, line \d+ in serve\n', b)), "")
    theirs = takewhile(lambda frame: not is_ours(frame.partition('"')[2]), frames.splitlines())
    return "\n".join(theirs)


def last_words(log: str) -> list[str]:
    """The last lines that a process printed, without the stacks of faulthandler and C++."""
    before, fatal, after = log.partition("Fatal Python error")
    lines = [line.strip() for line in (before + fatal + after.partition("\n")[0]).splitlines()]
    return [line for line in lines if line and not line.startswith("@ ")][-4:]


def _collect(stream: IO[bytes], answers: queue.SimpleQueue[bytes | None]) -> None:
    with suppress(OSError, ValueError):
        while message := receive(stream):
            answers.put(message)
    answers.put(None)
