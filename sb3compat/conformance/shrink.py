"""Find a small program that fails the same check: calls are removed and simplified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sb3compat.conformance.record import Drawn, Op

Ops = tuple[Op, ...]

# The number of calls that shrinking may make, and how often it may run a long program.
_MOST_CALLS, _FEWEST_RUNS = 10_000, 12


def shrunk(ops: Ops, fails: Callable[[Ops], bool], simplest: Sequence[Any], tries: int) -> Ops:
    """The smallest program found in a limited number of tries that still fails.

    Args:
        ops: A program that fails.
        fails: Whether a program does.
        simplest: Batches of actions, the simplest first.
        tries: How many programs may be run.
    """
    search = _Shrinking(ops, fails, tries)
    before = None
    while before is not search.ops and search.left > 0:
        before = search.ops
        search.leave_out()
        any(search.smaller(tuple(_with(op, actions) for op in search.ops)) for actions in simplest)
        for k, op in enumerate(search.ops):
            search.smaller((*search.ops[:k], _with(op, simplest[0]), *search.ops[k + 1 :]))
    return search.ops


class _Shrinking:
    """The smallest program so far, and how many more may be run."""

    def __init__(self, ops: Ops, fails: Callable[[Ops], bool], tries: int) -> None:
        self.ops, self._fails, self._tries = ops, fails, tries
        self._calls = max(_MOST_CALLS, _FEWEST_RUNS * len(ops))
        self._known = {self._key(ops)}
        self._seeded = any(map(_seeds, ops))
        self._reset = any(op.method == "reset" for op in ops)

    @property
    def left(self) -> int:
        """How many programs, or calls, may be run."""
        return min(self._tries, self._calls)

    def smaller(self, other: Ops) -> bool:
        """Take a program if it fails, too; whether it is the smallest now."""
        if self.left <= 0:
            return False
        key = self._key(other)
        if key == self._key(self.ops):
            return True
        if key in self._known or self._is_loose(other):
            return False
        self._known.add(key)
        self._tries -= 1
        self._calls -= len(other)
        if self._fails(other):
            self.ops = other
            return True
        return False

    def leave_out(self) -> None:
        """Leave out calls, many of them at first, the last ones first."""
        size = max(len(self.ops) // 2, 1)
        while size and self.left > 0:
            end = len(self.ops)
            while end > 0:
                begin = max(end - size, 0)
                self.smaller(self.ops[:begin] + self.ops[end:])
                end = begin
            size //= 2

    def _is_loose(self, ops: Ops) -> bool:
        """Whether the program leaves out what no script should: the first reset, and its seed.

        Nor may actions be drawn from a space that is not seeded.
        """
        methods = [op.method for op in ops]
        steps = [k for k, method in enumerate(methods) if method.startswith("step")]
        opening = ops[: steps[0]] if steps else ops
        if self._reset and not any(op.method == "reset" for op in opening):
            return True
        if self._seeded and not any(map(_seeds, opening)):
            return True
        drawn = any(isinstance(argument, Drawn) for op in ops for argument in op.args)
        return drawn and not any(method.endswith("space.seed") for method in methods)

    @staticmethod
    def _key(ops: Ops) -> tuple[str, ...]:
        return tuple(op.source() for op in ops)


def _seeds(op: Op) -> bool:
    """Whether a call seeds the environment: a script without such a call may pass by chance."""
    return op.method == "seed" or op.kwargs.get("seed") is not None


def _with(op: Op, actions: Any) -> Op:
    """The call with these actions, or with the simplest seed."""
    if op.method == "step":
        return Op("step", (actions,))
    if op.method == "seed":
        return Op("seed", (0,))
    if op.kwargs.get("seed") is not None:
        return Op(op.method, op.args, {**op.kwargs, "seed": 0})
    return op
