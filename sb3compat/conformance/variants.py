"""The same program once more, with one difference that must not matter, or must matter.

Each variant is a function of the calls of a program; the kit runs what it returns on another
instance, `twin`, and a comparison judges the two records together.
"""

from __future__ import annotations

from collections.abc import Iterator

from sb3compat.conformance.record import OVERWRITE, Op

Ops = tuple[Op, ...]

# How far a seed that must not matter is from the one before it.
_OTHER = 7


def again(ops: Ops) -> Ops:
    """The same calls."""
    return ops


def in_two_halves(ops: Ops) -> Ops:
    """Each `step` as `step_async` and `step_wait`."""

    def halves() -> Iterator[Op]:
        for op in ops:
            if op.method == "step":
                yield Op("step_async", op.args)
                yield Op("step_wait")
            else:
                yield op

    return tuple(halves())


def with_writing(ops: Ops) -> Ops:
    """All results are written into."""

    def writing() -> Iterator[Op]:
        for op in ops:
            yield op
            if op.method in ("reset", "step"):
                yield Op(OVERWRITE)

    return tuple(writing())


def seeded_late(ops: Ops) -> Ops:
    """A call of `seed` after the first step that no reset follows."""
    resets = [k for k, op in enumerate(ops) if op.method == "reset"]
    place = resets[-1] + 2 if resets else 0
    if not 0 < place < len(ops):
        return ()
    return (*ops[:place], Op("seed", (_seed(ops) + _OTHER,)), *ops[place:])


def _seed(ops: Ops) -> int:
    return max((int(op.args[0]) for op in ops if op.method == "seed"), default=0)
