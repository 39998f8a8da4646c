"""Checks in forks of a process that has made instances ahead, where making one takes long.

A fork has copies of the instances, as new as when they were made, at next to no cost. So there must
be nothing in them that two processes would share, or that a fork lacks: open files and sockets,
memory that is mapped as shared, child processes and threads.
"""

from __future__ import annotations

import ctypes
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

import cloudpickle

from sb3compat.conformance.program.instances import counted, make_ahead
from sb3compat.conformance.subject.pace import MADE_AHEAD
from sb3compat.conformance.subject.subject import Subject

_T = TypeVar("_T")

# Forks pay if making an instance takes so many seconds.
_LONG = 0.5
_PR_SET_PDEATHSIG = 1


class Forks:
    """Forks of this process, in which a factory gives out instances that were made here.

    It is made before the factory is called for the first time.

    Args:
        before: What the process held before anything of the environment was imported.

    Attributes:
        make_seconds: The least time that making one has taken.
    """

    def __init__(self, before: object) -> None:
        self._before, self._threads = before, _threads()
        self._subject: Subject
        self._instances: list[Any] = []
        self.make_seconds = math.inf

    @property
    def safe(self) -> bool:
        """Whether a fork would share nothing with this process, and lack nothing.

        Threads that were there before the environment do no harm, nor do those that a library ends
        before each fork, and starts anew when it needs them, as OpenBLAS does.
        """
        if held() != self._before:
            return False
        if _threads() > self._threads:
            fork = multiprocessing.get_context("fork").Process(target=bool)
            fork.start()
            fork.kill()
            fork.join()
        return _threads() <= self._threads

    def prepare(self, subject: Subject, first: Any) -> bool:
        """Make the instances; whether forks pay, and are safe.

        An exception of the factory is left for the checks to find.

        Args:
            subject: The environment.
            first: The first instance, which nobody has used; if there are no forks, it stays open.
        """
        self._subject = subject
        with suppress(Exception):
            while subject.make_seconds >= _LONG and self.safe:
                if len(self._instances) == MADE_AHEAD - 1:
                    self._instances.append(first)
                    return True
                begin = time.perf_counter()
                self._instances.append(counted(subject.factory))
                self.make_seconds = min(self.make_seconds, time.perf_counter() - begin)
                if self.make_seconds < _LONG:
                    break
        self.close()
        return False

    def close(self) -> None:
        """Close the instances."""
        store = self._subject.instances()
        while self._instances:
            store.end(self._instances.pop())

    def run(self, function: Callable[[], _T], most: int = MADE_AHEAD) -> _T:
        """What a function returns in a fork. If that dies, so does this process.

        Args:
            function: The function.
            most: So many of the instances are given out.
        """
        context = multiprocessing.get_context("fork")
        answers, out = context.Pipe(duplex=False)
        fork = context.Process(target=self._answer, args=(out, function, most))
        fork.start()
        out.close()
        try:
            answer = answers.recv_bytes()
        except EOFError:
            sys.exit(1)
        answers.close()
        fork.kill()  # threads of the environment may keep it from ending
        fork.join()
        found: _T = cloudpickle.loads(answer)
        return found

    def _answer(self, out: Connection, function: Callable[[], object], most: int) -> None:
        end_with_parent()
        make_ahead(self._subject.factory, self._instances[:most])
        out.send_bytes(cloudpickle.dumps(function()))


def held() -> object:
    """What a fork would share with this process, or lack: files, memory, children and threads."""
    try:
        files = sorted(os.listdir("/proc/self/fd"))
        mapped = Path("/proc/self/maps").read_text().splitlines()
        children = [path.read_text() for path in Path("/proc/self/task").glob("*/children")]
    except OSError:
        return object()  # it equals nothing: no forks where that is unknown
    shared = [line for line in mapped if " rw-s " in line]
    return files, shared, "".join(children), threading.active_count()


def _threads() -> int:
    """The number of threads, also of those that Python does not know."""
    with suppress(OSError):
        return len(os.listdir("/proc/self/task"))
    return 0


def end_with_parent() -> None:
    """Have Linux end this process with its parent, even while it hangs in a check."""
    if sys.platform == "linux":
        with suppress(Exception):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
