"""A reproduction, run in a Python of its own, as the user will run it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Literal

from sb3compat.conformance.program.source import PLACEHOLDER
from sb3compat.conformance.run.child import cause_of_death, end
from sb3compat.conformance.run.report import Result
from sb3compat.conformance.run.reproduction import CHECK_FAILS, FACTORY_FAILS, NOT_EVERY_TIME

Verdict = Literal["fails", "passes", "other", "unable"]

# As `python FILE` does it, save that a fork server imports the libraries once for all workers.
_RUN = """\
import multiprocessing, runpy, sys
multiprocessing.set_forkserver_preload(["sb3compat.conformance.run.preloaded"])
del sys.argv[0]
sys.path[0] = sys.argv[0].rpartition("/")[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
# So often it is looked whether a script is to end.
_TICK = 0.5
_LINES = 12
# A script that passes so many times does not show the failure.
_TRIES = 2
_WITHDRAWN = (
    "the failure is withdrawn, as its script passes in a Python of its own: something that an "
    "earlier program left behind has made it fail. It was: {}"
)


@dataclass(frozen=True)
class Rerun:
    """The outcome of a script.

    Attributes:
        verdict: `fails` as expected, `passes`, `other` for another exception or a hang, or
            `unable` to run.
        said: The last lines of its output, or the reason why it did not run.
    """

    verdict: Verdict
    said: str = ""


def rerun(
    script: str, expected: str, seconds: float, path: Iterable[str], stop: Event | None = None
) -> Rerun:
    """Run a script in a Python of its own, and see how it fails.

    Args:
        script: Its source.
        expected: The type of the exception and more, or the message of a hang or a crash.
        seconds: The time limit.
        path: Where its modules are, besides the installed ones.
        stop: Ends it early.
    """
    with tempfile.TemporaryDirectory(prefix="sb3compat-") as folder:
        file, log = Path(folder, "reproduction.py"), Path(folder, "log")
        file.write_text(script, encoding="utf-8")
        code = _ended([sys.executable, "-c", _RUN, str(file)], log, seconds, path, stop)
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    if code is None:
        hung: Verdict = "fails" if expected.startswith("timeout") else "other"
        return Rerun(hung, f"has not ended within {seconds:.0f} s")
    if code == 0:
        return Rerun("passes")
    cause = cause_of_death(code)
    if cause in expected:
        return Rerun("fails", f"the process has died of {cause}")
    last = lines[-1] if lines else cause
    kind = last.partition(":")[0].rpartition(".")[2]
    if kind and kind in expected:
        return Rerun("fails", last)
    return Rerun("other", "\n".join(lines[-_LINES:]) or last)


def expected_of(result: Result) -> str:
    """What the script of a result is expected to end with."""
    raised = result.status == "errored" or (result.status == "xfailed" and result.trace)
    return result.message if raised else "AssertionError"


def confirmed(result: Result, seconds: float, stop: Event | None = None) -> Result:
    """The result, or none if its script passes in a Python of its own.

    A script that cannot run by itself confirms and refutes nothing.

    Args:
        result: The result of a check.
        seconds: The time limit of the script.
        stop: Ends it early.
    """
    if result.status not in ("failed", "errored") or not result.reproduction:
        return result
    own = result.message.startswith(CHECK_FAILS)
    if own or PLACEHOLDER in result.reproduction or NOT_EVERY_TIME in result.message:
        return result
    for _ in range(_TRIES):
        path = filter(None, sys.path)
        run = rerun(result.reproduction, expected_of(result), seconds, path, stop)
        if run.verdict != "passes":
            return result
    if result.message.startswith(FACTORY_FAILS):  # it does so at times, which no script can show
        return replace(result, message=f"{result.message} ({NOT_EVERY_TIME})")
    return replace(
        result,
        status="not_exercised",
        message=_WITHDRAWN.format(result.message),
        reproduction="",
        trace="",
        timeline=(),
        finding=None,
    )


def _ended(
    command: list[str], log: Path, seconds: float, path: Iterable[str], stop: Event | None
) -> int | None:
    """The exit code of a command, or None if it takes longer; its processes are ended."""
    deadline = time.monotonic() + seconds
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
        try:
            while not (stop and stop.is_set()) and (left := deadline - time.monotonic()) > 0:
                with suppress(subprocess.TimeoutExpired):
                    return process.wait(min(left, _TICK))
            return None
        finally:
            end(process)
