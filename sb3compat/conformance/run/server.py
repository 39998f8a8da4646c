"""The child process: it answers until the parent hangs up."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
from contextlib import suppress
from typing import Any

import cloudpickle

from sb3compat.conformance.checks.catalogue import find_check
from sb3compat.conformance.program.trace import trace_of
from sb3compat.conformance.run.reproduction import timeline_of
from sb3compat.conformance.run.search import run_check
from sb3compat.conformance.run.wire import receive, send
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.subject.scout import scout
from sb3compat.conformance.subject.subject import Subject

_PR_SET_PDEATHSIG = 1


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
    _end_with_parent()
    subject: Subject | None = None
    while message := receive(questions):
        _, question = cloudpickle.loads(message)
        value: Any
        try:
            if question[0] == "examine":
                subject = value = examine(**cloudpickle.loads(question[1]), seconds=None)
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
        send(answers, answer)


def _end_with_parent() -> None:
    """Have Linux end this process with its parent, even while it hangs in a check."""
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
