"""A few pairs instead of all of them."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from tests.profiles import nightly

Pair = tuple[str, str]


def chosen(pairs: Iterable[Pair], seed: int = 0) -> list[Pair]:
    """All the pairs nightly, and otherwise a covering set."""
    return sorted(set(pairs)) if nightly() else covering(pairs, seed)


def covering(pairs: Iterable[Pair], seed: int = 0) -> list[Pair]:
    """Some of the pairs, in which each name stands wherever it stands in any of them.

    That is: a name that comes first in some pair comes first in one of these; likewise second.
    They are about as many as there are names.

    Args:
        pairs: Which pairs there are.
        seed: Another seed chooses other pairs; the same seed the same, in any order of `pairs`.
    """
    shuffled = sorted(set(pairs))
    Random(seed).shuffle(shuffled)
    chosen: list[Pair] = []
    firsts: set[str] = set()
    seconds: set[str] = set()
    for needed in (2, 1):  # first the pairs that serve both of their names
        for first, second in shuffled:
            if (first not in firsts) + (second not in seconds) >= needed:
                chosen.append((first, second))
                firsts.add(first)
                seconds.add(second)
    return chosen
