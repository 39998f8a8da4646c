"""The smallest program that breaks the same clause: calls are left out, and made simpler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sb3compat.conformance.record import Op

Ops = tuple[Op, ...]

# So many calls may be made to make a program smaller, and so often may a long one be run.
_MOST_CALLS, _FEWEST_RUNS = 10_000, 12


def shrunk(ops: Ops, fails: Callable[[Ops], bool], simplest: Sequence[Any], tries: int) -> Ops:
    """A program as small as so many tries find it, that still fails.

    Args:
        ops: A program that fails.
        fails: Whether a program does.
        simplest: Batches of actions, the simplest first.
        tries: How many programs may be run.
    """
    known: dict[str, bool] = {}
    left = max(_MOST_CALLS, _FEWEST_RUNS * len(ops))

    def smaller(other: Ops) -> bool:
        nonlocal ops, tries, left
        source = "\n".join(op.source() for op in other)
        if source not in known and tries > 0 and left > 0:
            tries -= 1
            left -= len(other)
            known[source] = fails(other)
        if known.get(source):
            ops = other
            return True
        return False

    known["\n".join(op.source() for op in ops)] = False
    before = None
    while before is not ops and min(tries, left) > 0:
        before = ops
        _leave_out(lambda: ops, smaller)
        any(smaller(tuple(_with(op, actions) for op in ops)) for actions in simplest)
        for k in range(len(ops)):
            smaller((*ops[:k], _with(ops[k], simplest[0]), *ops[k + 1 :]))
    return ops


def _leave_out(ops: Callable[[], Ops], smaller: Callable[[Ops], bool]) -> None:
    """Leave out calls, many of them at first, the last ones first."""
    size = max(len(ops()) // 2, 1)
    while size:
        end = len(ops())
        while end > 0:
            begin = max(end - size, 0)
            now = ops()
            smaller(now[:begin] + now[end:])
            end = begin
        size //= 2


def _with(op: Op, actions: Any) -> Op:
    """The call with these actions, or with the simplest seed."""
    if op.method == "step":
        return Op("step", (actions,))
    if op.method == "seed":
        return Op("seed", (0,))
    if op.kwargs.get("seed") is not None:
        return Op(op.method, op.args, {**op.kwargs, "seed": 0})
    return op
