"""The log of a child process: the stacks that faulthandler wrote there, and the last lines."""

from __future__ import annotations

import re
from itertools import takewhile

from sb3compat.conformance.program.trace import is_ours


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
