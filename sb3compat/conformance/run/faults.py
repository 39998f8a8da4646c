"""Hangs and crashes of the child process: what they were, and the shortest program that shows one.

An environment that hangs at the end of an episode hangs in most checks. That is told once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sb3compat.conformance.findings import cut
from sb3compat.conformance.run.child import ChildFailureError

# Programs with these shares of the steps are tried, each in a process that may hang or die.
_SHARES = (0, 1 / 8, 1 / 4, 1 / 2)
_LONGEST = 100
_CALLS = re.compile(r"\b(?:env|twin|third|other|single|model\[0\])\.(\w+)\(|\b(make_env)\(")
_OPENING = re.compile(r"(?:\w+, )*\w+ = make_env\(|\w+\.seed\(|(?:\w+, )*\w+ = \w+\.reset\(")


@dataclass(frozen=True)
class Fault:
    """A hang or a crash.

    Attributes:
        kind: What tells it from others: how the process ended, in which call, in which function.
        message: The same in words.
        stack: The stack of the process, the innermost call first; empty if unknown.
    """

    kind: tuple[str, str, str]
    message: str
    stack: str

    @classmethod
    def of(cls, error: ChildFailureError) -> Fault:
        """The fault that ended a child, in the last statement of its program."""
        last = error.lines[-1] if error.lines else ""
        called = _CALLS.findall(last)
        call = next(filter(None, called[0])) if called else ""
        function = error.stack.partition("\n")[0].rpartition(" in ")[2]
        # On one line, without the names that the statement assigns to.
        shown = cut(re.sub(r"^(?:\w+, )*\w+ = ", "", last), _LONGEST)
        said = f"{error}, in {shown}" if last else str(error)
        kind = (error.cause or "timeout", call, function)
        return cls(kind, said, error.stack)


def shrunk(lines: Sequence[str], faulty: Callable[[Sequence[str]], bool]) -> tuple[str, ...]:
    """A shorter program with the same last statement that is faulty, too: without its first steps.

    Args:
        lines: The program.
        faulty: Runs a program; whether it hangs or dies as this one did.
    """
    steps = [k for k, line in enumerate(lines[:-1]) if not _OPENING.match(line)]
    for kept in sorted({int(share * len(steps)) for share in _SHARES}):
        out = {*steps[: len(steps) - kept]}
        fewer = tuple(line for k, line in enumerate(lines) if k not in out)
        if out and faulty(fewer):
            return fewer
    return tuple(lines)
