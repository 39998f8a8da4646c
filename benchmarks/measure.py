"""How two things are compared: in turns, within one run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

import numpy as np

BLOCK_SECONDS = 0.02

Work = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, of ours and of what it is compared with."""

    what: str
    n: int
    other: str
    ours: float
    theirs: float
    unit: str
    # Ours by theirs, of times where the unit is a rate; and the quartiles over the rounds.
    ratio: float
    low: float
    high: float
    aim: float | None = None


def make_actions(num_envs: int) -> Iterator[Any]:
    """Random actions of CartPole, always the same."""
    return cycle(np.random.default_rng(0).integers(2, size=(256, num_envs)))


def seconds(work: Work, repeat: int) -> float:
    start = time.perf_counter()
    for _ in range(repeat):
        work()
    return (time.perf_counter() - start) / repeat


def compare(
    what: str,
    n: int,
    ours: Work,
    other: str,
    theirs: Work,
    *,
    rounds: int,
    aim: float | None = None,
    frames: int | None = None,
    block: float = BLOCK_SECONDS,
) -> Row:
    """Let both take turns in short blocks, so that a busy machine slows both.

    With `frames`, the number of them in one call, the row shows rates and not times. Processes that
    have slept during the other's block take some steps to be at full speed: a longer `block`, in
    seconds, makes these few among many.
    """
    # The fastest of some calls: the first ones are cold.
    repeats = [
        max(1, round(block / min(seconds(work, 1) for _ in range(5)))) for work in (ours, theirs)
    ]
    blocks = [(seconds(ours, repeats[0]), seconds(theirs, repeats[1])) for _ in range(rounds)]
    low, middle, high = statistics.quantiles((a / b for a, b in blocks), n=4)
    mine, its = (statistics.median(times) for times in zip(*blocks, strict=True))
    if frames is None:
        return Row(what, n, other, mine * 1e6, its * 1e6, "us", middle, low, high, aim)
    return Row(what, n, other, frames / mine, frames / its, "frames/s", middle, low, high, aim)


def median(rows: list[Row]) -> Row:
    """The same row, measured several times."""
    ours = statistics.median(row.ours for row in rows)
    theirs = statistics.median(row.theirs for row in rows)
    low, middle, high = statistics.quantiles((row.ratio for row in rows), n=4)
    return replace(rows[0], ours=ours, theirs=theirs, low=low, ratio=middle, high=high)
