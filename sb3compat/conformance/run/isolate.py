"""Checks in a child process: an environment that hangs or dies costs one check, not the run.

The child is a fresh interpreter rather than a `multiprocessing` process, which would import the
user's main module once more, and with it the call that started it.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import queue
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import IO, Any

import cloudpickle

from sb3compat.conformance.checks.catalogue import find_check
from sb3compat.conformance.contract import Check
from sb3compat.conformance.findings import FactoryError
from sb3compat.conformance.program.journal import read_journal
from sb3compat.conformance.program.trace import is_ours, trace_of
from sb3compat.conformance.run.report import Moment, Result
from sb3compat.conformance.run.runner import Settings, run_check, timeline_of
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.subject.scout import scout
from sb3compat.conformance.subject.subject import Subject

# To start the interpreter and import what the factory needs.
_START_SECONDS = 120.0
_LENGTH = struct.Struct("!Q")

_PR_SET_PDEATHSIG = 1

# How often to look whether a process that hangs has said where.
_LOOKS, _LOOKS_EVERY = 40, 0.05

_START = "from sb3compat.conformance.run.isolate import serve; serve()"


class ChildFailureError(Exception):
    """The child process did not answer: it took too long, or it died.

    Args:
        message: Which of the two.
        stack: Where it was, the innermost call first; empty if that is not known.
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
    """The traceback of what a factory has raised, here or in a child."""
    cause = error.__cause__
    text: str = cause.args[0] if isinstance(cause, ChildTraceback) else trace_of(error)
    return text.rstrip()


class Child:
    """A process that runs checks.

    What the environment prints goes into a file, of which the end is shown if the process dies.
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

    def examine(self, payload: dict[str, Any], seconds: float) -> Subject:
        """Look at the environment, and keep what is found for the checks.

        Args:
            payload: The arguments of `examine`.
            seconds: How long that may take.

        Raises:
            ChildFailureError: If it takes longer, or the process dies.
            FactoryError: If the factory makes no vector environment, or cannot be carried over.
            Exception: What the factory raises.
        """
        try:
            carried = cloudpickle.dumps(payload)
        except Exception as error:
            raise FactoryError(
                "Expected a factory that cloudpickle can carry to another process, where the "
                f"checks run, but it raised {type(error).__name__}: {error}. Or run them in this "
                "one: isolate=False, on the command line --no-isolate."
            ) from error
        subject: Subject = self._ask(("examine", carried), seconds + _START_SECONDS)
        return subject

    def scout(self, scouting: float, seconds: float) -> Subject:
        """Look for the end of an episode in what was examined.

        Args:
            scouting: How long to look.
            seconds: How long to wait for that.

        Raises:
            ChildFailureError: If it takes longer than `seconds`, or the process dies.
        """
        subject: Subject = self._ask(("scout", scouting), seconds)
        return subject

    def adopt(self, subject: Subject) -> None:
        """Take over what another child has found."""
        self._ask(("adopt", cloudpickle.dumps(subject)), _START_SECONDS)

    def run(self, check: Check, settings: Settings, seconds: float) -> Result:
        """Run a check.

        Raises:
            ChildFailureError: If that takes longer than `seconds`, or the process dies.
        """
        settings = replace(settings, journal=str(self._journal))
        self._journal.unlink(missing_ok=True)
        result: Result = self._ask(("run", check.family, check.id, settings), seconds)
        return result

    def timeline(self, lines: list[str], settings: Settings, seconds: float) -> tuple[Moment, ...]:
        """Run these statements, and note what came of the last steps among them.

        Raises:
            ChildFailureError: If that takes longer than `seconds`, or the process dies.
        """
        moments: tuple[Moment, ...] = self._ask(("timeline", lines, settings), seconds)
        return moments

    def last_program(self) -> list[str]:
        """The statements that the process was running when it was lost."""
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

    def _ask(self, question: tuple[Any, ...], seconds: float) -> Any:
        try:
            _send(self._stdin, cloudpickle.dumps((seconds, question)))
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
            said = _last_words(log)
            last = f"; it last said: {' | '.join(said)}" if said else ""
            raise ChildFailureError(
                f"crashed: the process has died with exit code {code}{last}", _stack_in(log)
            )
        kind, value = cloudpickle.loads(answer)
        if kind == "raised":
            error, trace = value
            raise error from ChildTraceback(trace)
        return value

    def _where(self) -> str:
        """Have it write down where it is."""
        if hasattr(faulthandler, "register"):
            self._process.send_signal(signal.SIGUSR1)
            for _ in range(_LOOKS):
                if stack := _stack_in(self._log.read_text(errors="replace")):
                    return stack
                time.sleep(_LOOKS_EVERY)
        return ""


def _stack_in(log: str) -> str:
    """The frames within the environment that faulthandler has written down, of the last call.

    They are there as soon as those of the kit are, which come after them.
    """
    blocks = re.split(r"(?m)^(?:Current thread|Thread) 0x\w+.*\n", log)
    frames = next((b for b in reversed(blocks) if re.search(r'" ?, line \d+ in serve\n', b)), "")
    theirs = takewhile(lambda frame: not is_ours(frame.partition('"')[2]), frames.splitlines())
    return "\n".join(theirs)


def _last_words(log: str) -> list[str]:
    """What a process has printed last, without the stacks that faulthandler and C++ print."""
    before, fatal, after = log.partition("Fatal Python error")
    lines = [line.strip() for line in (before + fatal + after.partition("\n")[0]).splitlines()]
    return [line for line in lines if line and not line.startswith("@ ")][-4:]


def _collect(stream: IO[bytes], answers: queue.SimpleQueue[bytes | None]) -> None:
    with suppress(OSError, ValueError):
        while message := _receive(stream):
            answers.put(message)
    answers.put(None)


def _send(stream: IO[bytes], message: bytes) -> None:
    stream.write(_LENGTH.pack(len(message)) + message)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes | None:
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        return None
    return stream.read(_LENGTH.unpack(header)[0])


def serve() -> None:
    """What the child does: answer until the parent hangs up."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What the environment prints must not get between the answers.
    os.dup2(2, 1)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    faulthandler.enable()
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1)
    _end_with_parent()
    subject: Subject | None = None
    while message := _receive(questions):
        _, question = cloudpickle.loads(message)
        value: Any
        try:
            if question[0] == "examine":
                subject = value = examine(**cloudpickle.loads(question[1]))
            elif question[0] == "scout":
                assert subject is not None
                subject = value = scout(subject, question[1])
            elif question[0] == "adopt":
                subject, value = cloudpickle.loads(question[1]), None
            elif question[0] == "timeline":
                assert subject is not None
                value = timeline_of(subject, question[2], question[1])
            else:
                assert subject is not None
                _, family, check_id, settings = question
                value = run_check(find_check(family, check_id), subject, settings)
            answer = cloudpickle.dumps(("answer", value))
        except Exception as error:
            answer = _carried(error)
        _send(answers, answer)


def _end_with_parent() -> None:
    """Have Linux end this process with its parent, also while it hangs in a check."""
    if sys.platform == "linux":
        with suppress(Exception):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _carried(error: Exception) -> bytes:
    trace = trace_of(error)
    try:
        carried = cloudpickle.dumps(("raised", (error, trace)))
        cloudpickle.loads(carried)
    except Exception:
        plain = RuntimeError(f"{type(error).__name__}: {error}")
        carried = cloudpickle.dumps(("raised", (plain, trace)))
    return bytes(carried)
