"""Checks in a child process: an environment that hangs or dies costs one check, not the run.

The child is a fresh interpreter. A `multiprocessing` process would import the user's main module
once more, and with it the call that started it.
"""

from __future__ import annotations

import faulthandler
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import cloudpickle

from sb3compat.conformance.contract import Check
from sb3compat.conformance.findings import FactoryError
from sb3compat.conformance.program.journal import read_journal
from sb3compat.conformance.program.trace import trace_of
from sb3compat.conformance.run.log import last_words, stack_in
from sb3compat.conformance.run.report import Moment, Result
from sb3compat.conformance.run.settings import Settings
from sb3compat.conformance.run.wire import carried, receive, send
from sb3compat.conformance.subject.examine import Given
from sb3compat.conformance.subject.subject import Subject

_START = "from sb3compat.conformance.run.server import serve; serve()"
# To start the interpreter and import the modules of the factory.
_START_SECONDS = 120.0
# How often to look for the stack of a process that hangs.
_LOOKS, _LOOKS_EVERY = 40, 0.05


class ChildFailureError(Exception):
    """The child process hung or died.

    Args:
        message: Which of the two.
        stack: Its stack, the innermost call first; empty if unknown.
    """

    def __init__(self, message: str, stack: str = "") -> None:
        super().__init__(message)
        self.stack = stack


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads its own session, and all that it has started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


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
    """

    def __init__(self) -> None:
        handle, name = tempfile.mkstemp(prefix="sb3compat-", suffix=".log")
        self._log = Path(name)
        self._journal = self._log.with_suffix(".journal")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=handle,
            env=environment,
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

    def examine(self, given: Given, seconds: float) -> Subject:
        """Examine the environment in the child.

        Args:
            given: The arguments of `examine`.
            seconds: The time limit.

        Raises:
            ChildFailureError: If it takes longer, or the process dies.
            FactoryError: If the factory makes no vector environment, or cannot be carried over.
            Exception: An exception of the factory itself.
        """
        try:
            packed = cloudpickle.dumps((given,))
        except Exception as error:
            raise FactoryError(
                "Expected a factory that cloudpickle can carry to another process, where the "
                f"checks run, but it raised {type(error).__name__}: {error}. Or run them in this "
                "one: isolate=False, on the command line --no-isolate."
            ) from error
        subject: Subject = self._ask("examine", packed, seconds + _START_SECONDS)
        return subject

    def scout(self, scouting: float, seconds: float) -> Subject:
        """Search the environment for ends of episodes.

        Args:
            scouting: The time for the search.
            seconds: The time limit.

        Raises:
            ChildFailureError: If it takes longer than `seconds`, or the process dies.
        """
        subject: Subject = self._ask("scout", cloudpickle.dumps((scouting,)), seconds)
        return subject

    def adopt(self, subject: Subject) -> None:
        """Give the child the facts that another child has found."""
        self._ask("adopt", cloudpickle.dumps((subject,)), _START_SECONDS)

    def run(self, check: Check, settings: Settings, seconds: float) -> Result:
        """Run a check.

        Raises:
            ChildFailureError: If it takes longer than `seconds`, or the process dies.
        """
        settings = replace(settings, journal=str(self._journal))
        self._journal.unlink(missing_ok=True)
        result: Result = self._ask("run", carried(check, settings), seconds)
        return result

    def timeline(self, lines: list[str], settings: Settings, seconds: float) -> tuple[Moment, ...]:
        """Run these statements, and return the outcomes of the last steps.

        Raises:
            ChildFailureError: If it takes longer than `seconds`, or the process dies.
        """
        packed = cloudpickle.dumps((lines, settings))
        moments: tuple[Moment, ...] = self._ask("timeline", packed, seconds)
        return moments

    def last_program(self) -> list[str]:
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

    def _ask(self, method: str, arguments: bytes, seconds: float) -> Any:
        """The value that a method of the child's `Server` returns, or its exception."""
        try:
            send(self._stdin, cloudpickle.dumps((method, arguments)))
            answer = self._answers.get(timeout=seconds)
        except queue.Empty:
            raise ChildFailureError(
                f"timeout: no answer within {seconds:.0f} s", self._where()
            ) from None
        except OSError:
            answer = None
        if answer is None:
            code = self._process.wait()
            log = self._log.read_text(errors="replace")
            said = last_words(log)
            last = f"; it last said: {' | '.join(said)}" if said else ""
            raise ChildFailureError(
                f"crashed: the process has died with exit code {code}{last}", stack_in(log)
            )
        kind, value = cloudpickle.loads(answer)
        if kind == "raised":
            error, trace = value
            raise error from ChildTraceback(trace)
        return value

    def _where(self) -> str:
        """The stack of the process, which it prints on a signal."""
        if hasattr(faulthandler, "register"):
            self._process.send_signal(signal.SIGUSR1)
            for _ in range(_LOOKS):
                if stack := stack_in(self._log.read_text(errors="replace")):
                    return stack
                time.sleep(_LOOKS_EVERY)
        return ""


def _collect(stream: IO[bytes], answers: queue.SimpleQueue[bytes | None]) -> None:
    with suppress(OSError, ValueError):
        while message := receive(stream):
            answers.put(message)
    answers.put(None)
