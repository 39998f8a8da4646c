"""Checks in forks of a process that has made instances ahead, where making one takes long.

A fork has copies of the instances, as new as when they were made, at next to no cost. So there must
be nothing in them that two processes would share, or that a fork lacks: open files and sockets,
memory that is mapped as shared, and threads.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

import cloudpickle

from sb3compat.conformance.program.instances import Instances, make_ahead
from sb3compat.conformance.program.types import Factory
from sb3compat.conformance.subject.pace import MADE_AHEAD

_T = TypeVar("_T")

# Forks pay if making an instance takes so many seconds.
_LONG = 0.5
_PR_SET_PDEATHSIG = 1


class Forks:
    """Forks of this process, in which a factory gives out instances that were made here.

    It is made before the factory is called for the first time.
    """

    def __init__(self) -> None:
        self._before = _held()
        self._factory: Factory
        self._instances: list[Any] = []

    def prepare(self, factory: Factory) -> bool:
        """Make the instances; whether forks pay, and are safe.

        An exception of the factory is left for the checks to find.
        """
        self._factory = factory
        store, found = Instances(factory), list[Any]()
        with suppress(Exception):
            while len(found) < MADE_AHEAD:
                begin = time.perf_counter()
                found.append(store.take(0, new=True)[0])
                if time.perf_counter() - begin < _LONG or _held() != self._before:
                    break
            else:
                self._instances = found
                return True
        for env in found:
            store.end(env)
        return False

    def run(self, function: Callable[[], _T]) -> _T:
        """What a function returns in a fork. If that dies, so does this process."""
        context = multiprocessing.get_context("fork")
        answers, out = context.Pipe(duplex=False)
        fork = context.Process(target=self._answer, args=(out, function))
        fork.start()
        out.close()
        try:
            answer = answers.recv_bytes()
        except EOFError:
            os._exit(1)
        answers.close()
        fork.kill()  # threads of the environment may keep it from ending
        fork.join()
        found: _T = cloudpickle.loads(answer)
        return found

    def _answer(self, out: Connection, function: Callable[[], object]) -> None:
        end_with_parent()
        make_ahead(self._factory, self._instances)
        out.send_bytes(cloudpickle.dumps(function()))


def _held() -> object:
    """What a fork would share with this process, or lack."""
    try:
        files = sorted(os.listdir("/proc/self/fd"))
        threads = len(os.listdir("/proc/self/task"))
        mapped = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return object()  # it equals nothing: no forks where that is unknown
    return files, threads, [line for line in mapped if " rw-s " in line]


def end_with_parent() -> None:
    """Have Linux end this process with its parent, even while it hangs in a check."""
    if sys.platform == "linux":
        with suppress(Exception):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
