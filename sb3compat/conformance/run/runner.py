"""What runs the checks of one environment, and the child process that does so for its parent."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import cloudpickle

from sb3compat.conformance.contract import Check
from sb3compat.conformance.program.instances import Instances, counted
from sb3compat.conformance.program.trace import trace_of
from sb3compat.conformance.run.checking import made_records, run_check
from sb3compat.conformance.run.forks import Forks, end_with_parent, held
from sb3compat.conformance.run.report import Moment, Result
from sb3compat.conformance.run.reproduction import FACTORY_FAILS, NOT_EVERY_TIME, timeline_of
from sb3compat.conformance.run.wire import receive, send
from sb3compat.conformance.subject.examine import Given, look_at, try_out
from sb3compat.conformance.subject.pace import MADE_AHEAD, rough
from sb3compat.conformance.subject.scout import scout
from sb3compat.conformance.subject.settings import Settings
from sb3compat.conformance.subject.subject import Subject

_T = TypeVar("_T")

# They look while an instance is made.
_ABOUT_MAKING = ("metadata_not_shared",)
# By name, as importing it takes seconds.
_PRELOADED = "sb3compat.conformance.run.preloaded"


class Runner:
    """Examines an environment and runs checks on it, in the process that it is in.

    Args:
        tell: Called with what is going on, and without a text while that goes on.
        held: What the process holds before anything of the environment is imported, if it may
            run in forks what takes long here.

    Attributes:
        lost: False, as of `ChildProcess`: if a check hangs or dies, nothing is left of the run.
    """

    lost = False

    def __init__(
        self, tell: Callable[[str], None] = lambda text: None, *, held: object = None
    ) -> None:
        self._tell, self._held = tell, held
        self._forks: Forks | None = None
        self._subject: Subject
        self._instances: Instances | None = None
        self._env: Any = None
        self._declared: Mapping[str, bool] = {}

    def examine(self, given: Given, seconds: float) -> Subject:
        """Examine the environment, and search its endings for so many seconds at most."""
        self.look_at(given)
        self.prepare()
        try:
            self.try_out()
        finally:
            self.release()
        return self.scout(seconds)

    def look_at(self, given: Given, forks: bool = True) -> Subject:
        """Make the environment, and leave it open; where it takes long, forks may be used later."""
        self._forks = Forks(self._held) if forks and self._held else None
        self._subject, self._env = look_at(**given)
        self._declared = given["declared"]
        return self._subject

    def prepare(self) -> Subject:
        """Make instances ahead, if that takes long."""
        forks = None if self._subject.alone else self._forks
        self._forks = forks if forks and forks.prepare(self._subject, self._env) else None
        if self._forks is not None:
            self._env, seconds = None, rough(self._forks.make_seconds)
            self._subject = replace(self._subject, forked=True, make_seconds=seconds)
        return self._subject

    def try_out(self) -> Subject:
        """Find out what the environment can do."""
        return self._found(lambda: try_out(self._subject, self._first(), self._declared))

    def release(self) -> None:
        """Close the environment."""
        self._aside(self._closed)

    def _closed(self) -> None:
        env, self._env = self._first(), None
        with suppress(Exception):  # a check reports it
            env.close()

    def _first(self) -> Any:
        """The instance that was looked at; in a fork a copy of it, which nobody has used."""
        return self._env if self._forks is None else counted(self._subject.factory)

    def _aside(self, function: Callable[[], _T]) -> _T:
        """What a function returns, in a fork if checks run in forks."""
        return function() if self._forks is None else self._forks.run(function)

    def _found(self, search: Callable[[], Subject]) -> Subject:
        """The subject with what a search has found."""
        factory, reference = self._subject.factory, self._subject.reference
        # What comes from a fork has copies of them.
        self._subject = replace(self._aside(search), factory=factory, reference=reference)
        return self._subject

    def adopt(self, subject: Subject) -> None:
        """Take the facts that another child has found, and import what the environment needs."""
        self._subject, self._instances = subject, subject.instances()
        with suppress(Exception):  # a check reports it
            env, _ = self._instances.take(0)
            self._instances.end(env)

    def scout(self, seconds: float) -> Subject:
        """Search the environment for ends of episodes."""
        return self._found(lambda: scout(self._subject, seconds, self._tell))

    def run(self, check: Check, settings: Settings) -> Result:
        """Run a check."""
        if self._instances is None:
            self._instances = self._subject.instances()
        run = partial(run_check, check, self._subject, settings, self._instances)
        if self._forks is None:
            return run()
        made_records(check, self._subject, settings, self._instances)
        if self._forks.safe:
            result = self._forks.run(run, 1 if check.id in _ABOUT_MAKING else MADE_AHEAD)
            if not any(text in result.message for text in (NOT_EVERY_TIME, FACTORY_FAILS)):
                return result
        # Those made ahead may be in the way, or at fault: begin once more, without them.
        self._forks.close()
        self._instances.close()
        self._forks = self._instances = None
        self._subject = replace(self._subject, forked=False)
        return self.run(check, settings)

    def remember(self, result: Result) -> None:
        """Do nothing: a hang or crash ends this process."""

    def close(self) -> None:
        """Close the instances that are still open."""
        if self._instances is not None:
            self._instances.close()
        if self._forks is not None:
            self._forks.close()

    def timeline(self, lines: list[str], settings: Settings) -> tuple[Moment, ...]:
        """Run a program, and return the outcomes of its last steps."""
        return timeline_of(self._subject, settings, lines)


def serve() -> None:
    """Answer questions until the parent hangs up."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # The output of the environment must not get between the answers.
    os.dup2(2, 1)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    faulthandler.enable()
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1)
    end_with_parent()
    multiprocessing.set_forkserver_preload([_PRELOADED])
    runner = Runner(lambda text: send(answers, cloudpickle.dumps(("tell", text))), held=held())
    while message := receive(questions):
        method, arguments = cloudpickle.loads(message)
        try:
            value = getattr(runner, method)(*cloudpickle.loads(arguments))
            answer = cloudpickle.dumps(("answer", value))
        except Exception as error:
            answer = _carried(error)
        send(answers, answer)


def _carried(error: Exception) -> bytes:
    trace = trace_of(error)
    try:
        carried = cloudpickle.dumps(("raised", (error, trace)))
        cloudpickle.loads(carried)
    except Exception:
        plain = RuntimeError(f"{type(error).__name__}: {error}")
        carried = cloudpickle.dumps(("raised", (plain, trace)))
    return bytes(carried)
