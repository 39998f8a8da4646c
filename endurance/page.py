"""The page, made from what the parts have found."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from endurance.soak import SOURCES

ENDINGS = {
    "stream went on": "the stream went on",
    "went on with lost rows": "rows of a lost worker ended as truncated, the stream went on",
    "error, reset": "an exception, then a reset",
    "error, close": "an exception, then a new environment",
    "error, nothing left": "an exception while a second one was made; nothing of that is left",
}

HEAD = """\
# How it holds up

How much comes through without a wrong value, and what remains after a fault. This page is
generated: `make endurance`, which `make nightly` calls. The figures are of one run of
{seconds:.0f} seconds on {cores} cores that did other work as well.

## Millions of steps

A step is one row's: a call with 64 rows counts as 64. *Start* is after the first 5 % of the
calls, when all is there that is made once; *end* is after the last, before `close`. All processes
count together: their resident memory (what several share counts in each), descriptors, threads,
and mapped shared memory (with Ray, its object store as a whole). Environments say in each
observation which row it is of, which is compared in each call; the native one cannot.

{soak}

## {faults:,} faults

Each comes in the middle of a stream that is compared with `DummyVecEnv`, step by step, over
worker processes and actors of Ray, single, vector and `VecEnv` parts, both values of
`on_worker_lost`. After it, the stream goes on; or the exception says why not, and a reset with a
seed or a new environment does. A call that carries a number has to come back with that number, so
that an answer to an earlier call is found. A call that takes longer than {limit} seconds would
count as one that hangs.

- *kill*: a worker gets SIGKILL, between steps or within one. *stop*: SIGSTOP, which a timeout
  ends; it goes on later.
- *raise*: an environment raises an `Exception`, a `BaseException`, or ends its process. *hang*:
  its step does not return.
- *interrupt*: KeyboardInterrupt, or the exception of a time limit, at a random bytecode
  instruction of a step, a reset, `set_attr` or `env_method`, some of them while a worker is being
  replaced.
- *full descriptors*: the process may open no more, or a few, while workers are made or replaced.

{ended}

**Wrong values: {wrong}. Calls that hung: {hung}.**
"""


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table of Markdown; the first column is text, the others are numbers."""
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def soak_table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """One line for each source."""

    def change(one: Mapping[str, Any], name: str, unit: int = 1) -> str:
        first, last = (round(one[when][name] / unit) for when in ("first", "last"))
        return f"{first:,}" if first == last else f"{first:,} → {last:,}"

    rows = [
        (
            SOURCES[name].shown, f"{one['steps']:,}", f"{one['seconds']:.0f} s",
            change(one, "memory", 2**20), change(one, "descriptors"), change(one, "threads"),
            change(one, "shared", 2**10), change(one, "processes"),
        )
        for name, one in found.items()
    ]  # fmt: skip
    head = ("source", "steps", "time", "memory, MB", "descriptors", "threads", "shared, kB")
    total = sum(one["steps"] for one in found.values())
    lines = table((*head, "processes"), rows)
    return f"{lines}\n\nTogether {total:,} steps."


def ended_table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """One line for each kind of fault and backend."""
    counts = {
        (kind, backend): count
        for backend, one in found.items()
        for kind, count in one["ended"].items()
    }
    met = {ending for count in counts.values() for ending in count}
    endings = [*(one for one in ENDINGS if one in met), *sorted(met - ENDINGS.keys())]
    rows = [
        (f"{kind}, {backend}", sum(count.values()), *(count.get(each, 0) for each in endings))
        for (kind, backend), count in sorted(counts.items())
    ]
    shown = [
        ", then ".join(ENDINGS.get(one, one) for one in each.split(", then ")) for each in endings
    ]
    return table(("fault", "how often", *shown), rows)


def page(soak: Mapping[str, Any], faults: Mapping[str, Any], limit: int, seconds: float) -> str:
    """The whole page."""
    wrong = [text for one in faults.values() for text in one["wrong"]]
    hung = sum("a call hangs" in text for text in wrong)
    return HEAD.format(
        seconds=seconds,
        cores=len(os.sched_getaffinity(0)),
        soak=soak_table(soak),
        faults=sum(
            sum(count.values()) for one in faults.values() for count in one["ended"].values()
        ),
        limit=limit,
        ended=ended_table(faults),
        wrong=len(wrong) - hung,
        hung=hung,
    )
