"""What a VectorEnv has handed out belongs to the caller, and so do the actions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sb3compat.conformance.checks.tools import clauses, comparing
from sb3compat.conformance.checks.tools.clauses import unchanged_by
from sb3compat.conformance.checks.vector_env.marks import (
    DETERMINISTIC,
    EPISODES,
    STEP,
    SYNC,
    marked,
)
from sb3compat.conformance.judge import Demand
from sb3compat.conformance.record import Record
from sb3compat.conformance.variants import in_one_array, with_writing

error, warning = marked(group="ownership", source=STEP)


@error(needs=("copies",))
def outputs_unchanged_by_later_steps(record: Record) -> Iterator[Demand]:
    """Later steps do not change the results of `reset` and `step`, infos included.

    If the environment fills one buffer again and again, every transition of a rollout has the
    values of the last one. Return copies. `SyncVectorEnv` with `copy=False` does this on request,
    and is not judged; for another one, declare the capability `copies` as missing.
    """
    for call in record.batches:
        yield from unchanged_by(record, call, "step", "a later step")


@error(
    source=SYNC,
    modes=("Disabled",),
    needs=("copies",),
    after=(*EPISODES, "outputs_unchanged_by_later_steps"),
)
def outputs_unchanged_by_masked_reset(record: Record) -> Iterator[Demand]:
    """In DISABLED mode a masked reset does not change the results of the step before it.

    The caller resets the rows that ended first, and then stores the transitions of all. If the
    reset writes into the array that the step returned, last observations are the next first ones.
    Return copies.
    """
    for step, after in pairwise(record.calls):
        if step.is_step and after.mask is not None and {*step.changed.values()} <= {after.number}:
            yield from unchanged_by(record, step, "reset", "the masked reset")


writing_outputs_does_not_change_env = error(
    source=SYNC, needs=("seeding", "copies"), after=DETERMINISTIC, variant=with_writing
)(comparing.writing_outputs_does_not_change_env)


actions_unchanged = error()(clauses.actions_unchanged)


actions_not_kept = warning(
    needs=("seeding",), after=(*DETERMINISTIC, "actions_unchanged"), variant=in_one_array
)(comparing.actions_not_kept)
