"""What a row that goes on shows where the episode of another row ends."""

from __future__ import annotations

from collections.abc import Iterator

from sb3compat.conformance.checks.tools.evidence import FEWEST, STEPS
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.record import Record
from sb3compat.conformance.rows import by_row, info_of


def infos_beside_ends(record: Record) -> Iterator[Demand]:
    """Where another row ends, a row that goes on has the infos that it has in all other steps."""
    for i, found in enumerate(by_row(record)):
        steps = [step for e in found for step in e.steps if not (e.over and step is e.end)]
        beside = [info_of(record, step, i) for step in steps if step.flags.any()]
        usual = [set(info_of(record, s, i).value) for s in steps if not s.flags.any()]
        if len(beside) < FEWEST or len(usual) < STEPS:
            continue
        lost = set.intersection(*usual).difference(*(info.value for info in beside))
        for key in sorted(lost - {"TimeLimit.truncated"}, key=str):
            yield expect(
                f"{key!r} in {{0}}",
                beside[-1],
                what="list({0})",
                should=f"with {key!r}, as in all steps without an end: only another row has ended",
                row=i,
            )
