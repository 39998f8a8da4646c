"""Demands on two records of programs that differ in one thing."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from sb3compat.conformance.findings import short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.record import Call, Record, Value

_RESULTS = ("rewards", "dones", "terminations", "truncations")


def alike(
    record: Record, twin: Record, should: str, rows: Collection[int] | None = None
) -> Iterator[Demand]:
    """The variant returns in each row what the program returned.

    Args:
        record: The record of the program.
        twin: The record of its variant.
        should: The end of a sentence: why it has to.
        rows: The rows; None for all.
    """
    for one, other in zip(record.batches, twin.batches, strict=False):
        for i in record.rows if rows is None else rows:
            yield _same(other.obs.row(i), one.obs.row(i), should, i)
            for a, b in results(other, one):
                if _by_row(a, record.num_envs) and _by_row(b, record.num_envs):
                    yield _same(a[i], b[i], should, i)
        for a, b in results(other, one):
            if not (_by_row(a, record.num_envs) and _by_row(b, record.num_envs)):
                yield _same(a, b, should)  # another check judges the shape


def _by_row(value: Value, n: int) -> bool:
    return bool(np.shape(value.value)[:1] == (n,))


def results(a: Call, b: Call) -> Iterator[tuple[Value, Value]]:
    """The rewards and flags of two steps, in pairs; none of resets."""
    names = (name for name in _RESULTS if name in a.copies and name in b.copies)
    return ((getattr(a, name), getattr(b, name)) for name in names)


def _same(got: Value, expected: Value, should: str, i: int | None = None) -> Demand:
    told = f"{short(expected.value, 80)}, {should}"
    return expect("equal({0}, {1})", got, expected, should=told, row=i)
