"""What several episodes of a record show together, where one alone proves nothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.rows import Episode
from sb3compat.conformance.values import Several, Value
from sb3compat.conformance.variants import seed_before

T = TypeVar("T")
U = TypeVar("U")
# Episodes that ended, each with the one that followed.
Pairs = list[tuple[Episode, Episode]]
# So many episodes of a row, so that chance is no explanation, and such a chance is small.
FEWEST, CHANCE = 4, 1e-5
# So many steps tell what steps do.
STEPS = 20
# Starts drawn from very many possible ones occur once each, and rarely a second time.
_DRAWN = 2

equal, distinct, pieces = (PRELUDE[name] for name in ("equal", "distinct", "pieces"))


def is_close(one: float, other: float) -> bool:
    """Whether two sums of floats may be one sum in another order."""
    return math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-4)


def by_chance(often: int, of: int, times: int) -> bool:
    """Whether what happens so often may happen so many times in a row, as what always happens."""
    return 0 < of == often or ((often + 1) / (of + 2)) ** times >= CHANCE


def values(parts: Sequence[Value]) -> list[Any]:
    """What the values were."""
    return [value.value for value in parts]


def bytes_of(obs: Any) -> bytes:
    """What tells an observation or action from others, to look it up by."""
    # There is a negative zero, which equals zero.
    parts = (piece + 0.0 if piece.dtype.kind == "f" else piece for piece in pieces(obs))
    return b" ".join(part.tobytes() for part in parts)


def moves_of(*found: Episode) -> list[tuple[Value, Value]]:
    """The observations before and after each step that ends no episode."""
    return [pair for e in found for pair in pairwise(e.seen[: len(e.before_end) + 1])]


def apart(pairs: Sequence[tuple[T, U]]) -> tuple[list[T], list[U]]:
    """The first ones of some pairs, and the second ones."""
    return [one for one, _ in pairs], [other for _, other in pairs]


def followed(found: list[Episode]) -> Pairs:
    """The episodes that ended, each with the one that followed without a reset of all rows."""
    return [(a, b) for a, b in pairwise(found) if a.over and b.by != "reset"]


def broken_off(found: list[Episode]) -> Pairs:
    """The episodes that a reset without a seed cut off, each with the one that followed."""
    return [(a, b) for a, b in pairwise(found) if not a.over and is_unseeded_reset(b)]


def is_unseeded_reset(episode: Episode) -> bool:
    """Whether an episode began with a reset of all rows, without a seed."""
    return episode.by == "reset" and seed_before(episode.record, episode.start) is None


def not_all_alike(
    some: list[Value], others: list[Value], should: str, i: int, shown: Value | None = None
) -> Demand:
    """Values of row i are not all equal to their counterparts; the last one is shown by default."""
    condition, values = "not all(map(equal, {0}, {1}))", (Several(some), Several(others))
    if shown is None:
        return expect(condition, *values, what="{0}[-1]", should=should, row=i)
    return expect(condition, *values, shown, what="{2}", should=should, row=i)


def has(info: Value, key: Any, should: str, i: int) -> Demand:
    """The info of row i has a key."""
    return expect(f"{key!r} in {{0}}", info, should=should, row=i)


def has_not(info: Value, key: Any, should: str, i: int) -> Demand:
    """The info of row i does not have a key."""
    return expect(f"{key!r} not in {{0}}", info, what=f"{{0}}[{key!r}]", should=should, row=i)


def too_much_alike(starts: list[Any], firsts: list[Any]) -> bool:
    """Whether equal first observations after ends are no chance, by those after resets."""
    if distinct(starts) == len(starts) > _DRAWN * FEWEST:
        return bool(_DRAWN * distinct(firsts) <= len(firsts))
    if any(not equal(first, firsts[0]) for first in firsts):
        return False
    groups: list[Any] = []
    counts: Counter[int] = Counter()
    for start in starts:
        known = [k for k, other in enumerate(groups) if equal(start, other)]
        groups += [] if known else [start]
        counts[known[0] if known else len(groups) - 1] += 1
    likeliest = (max(counts.values()) + 2) / (len(starts) + 2)
    return bool(likeliest ** (len(firsts) - 1) < CHANCE)
