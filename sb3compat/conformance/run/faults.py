"""Hangs and crashes of the child process: what they were, and the shortest program that shows one.

An environment that hangs at the end of an episode hangs in most checks. That is told once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sb3compat.conformance.findings import cut
from sb3compat.conformance.run.child import ChildFailureError

# So many shorter programs are tried, each in a process that may hang or die.
_TRIES = 6
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
        lines: The statements; the last one hung or killed the process.
    """

    kind: tuple[str, str, str]
    message: str
    stack: str
    lines: tuple[str, ...]

    @classmethod
    def of(cls, error: ChildFailureError, lines: Sequence[str]) -> Fault:
        """The fault that ended a child, in the last of these statements."""
        last = lines[-1] if lines else ""
        called = _CALLS.findall(last)
        call = next(filter(None, called[0])) if called else ""
        function = error.stack.partition("\n")[0].rpartition(" in ")[2]
        said = f"{error}, in {_call_of(last)}" if last else str(error)
        kind = (error.cause or "timeout", call, function)
        return cls(kind, said, error.stack, tuple(lines))


def _call_of(line: str) -> str:
    """A statement on one line, cut, without the names that it assigns to."""
    return cut(re.sub(r"^(?:\w+, )*\w+ = ", "", line), _LONGEST)


def shrunk(lines: Sequence[str], faulty: Callable[[Sequence[str]], bool]) -> tuple[str, ...]:
    """A shorter program with the same last statement that is faulty, too.

    Args:
        lines: The program.
        faulty: Runs a program; whether it hangs or dies as this one did.
    """
    opening = {k for k, line in enumerate(lines) if _OPENING.match(line)}
    kept = [*range(len(lines))]
    tries = _TRIES

    def try_out(fewer: list[int]) -> bool:
        nonlocal kept, tries
        tries -= 1
        if found := faulty([lines[k] for k in fewer]):
            kept = fewer
        return found

    steps = [k for k in kept[:-1] if k not in opening]
    width = len(steps)
    while width and tries:
        for start in range(0, len(steps), width):
            out = {*steps[start : start + width]} & {*kept}
            if out and tries and try_out([k for k in kept if k not in out]):
                steps = [k for k in steps if k not in out]
                break
        else:
            width //= 2
        width = min(width, len(steps))
    return tuple(lines[k] for k in kept)
