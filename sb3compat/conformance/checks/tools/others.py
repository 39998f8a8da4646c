"""What the infos of a row show where the episode of another row ends."""

from __future__ import annotations

from collections.abc import Iterator

from sb3compat.conformance.checks.tools.evidence import FEWEST, STEPS
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.record import Record
from sb3compat.conformance.rows import Episode, by_row, info_of, info_of_end

# So many steps in which rows end together, and one of them alone tells something, are no chance.
_TOGETHER = 3


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


def infos_of_ends_together(record: Record) -> Iterator[Demand]:
    """Where rows end in one step, each has the infos that it has where it ends alone."""
    over = [e for found in by_row(record) for e in found if e.over]
    alone = [set(info_of_end(record, e).value) for e in over if e.end.ended == [e.row]]
    together: dict[tuple[int, bool], list[Episode]] = {}
    for episode in over:
        # What truncations tell may be something else.
        together.setdefault((episode.end.number, episode.cut), []).append(episode)
    groups = [group for group in together.values() if len(group) > 1]
    if len(alone) < FEWEST or len(groups) < _TOGETHER:
        return
    for key in sorted(set.intersection(*alone), key=str):
        with_it = [[key in info_of_end(record, e).value for e in group] for group in groups]
        if all(sum(has) == 1 for has in with_it):
            lost = groups[-1][with_it[-1].index(False)]
            yield expect(
                f"{key!r} in {{0}}",
                info_of_end(record, lost),
                what="list({0})",
                should=f"with {key!r}, as where a row ends alone: of rows that end in one step, "
                "only one has it",
                row=lost.row,
            )
