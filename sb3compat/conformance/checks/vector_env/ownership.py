"""What a VectorEnv has handed out belongs to the caller, and so do the actions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sb3compat.conformance.checks.tools import clauses, comparing
from sb3compat.conformance.checks.tools.clauses import unchanged_by
from sb3compat.conformance.checks.tools.scenes import RESULTS, seeded_start, step_both
from sb3compat.conformance.checks.vector_env.marks import (
    DETERMINISTIC,
    EPISODES,
    STEP,
    SYNC,
    error,
    warning,
)
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.record import Record
from sb3compat.conformance.scene import Scene
from sb3compat.conformance.variants import in_one_array


@error(group="ownership", source=STEP, needs=("copies",))
def outputs_unchanged_by_later_steps(record: Record) -> Iterator[Demand]:
    """Later steps do not change the results of `reset` and `step`, infos included.

    If the environment fills one buffer again and again, every transition of a rollout has the
    values of the last one. Return copies. `SyncVectorEnv` with `copy=False` does this on request,
    and is not judged; for another one, declare the capability `copies` as missing.
    """
    for call in record.batches:
        yield from unchanged_by(record, call, "step", "a later step")


@error(
    group="ownership",
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


@error(group="ownership", source=SYNC, needs=("seeding", "copies"), after=DETERMINISTIC)
def writing_outputs_does_not_change_env(scene: Scene) -> Iterator[Demand]:
    """Writing into observations, rewards and infos does not change the environment.

    Training code does write: it normalises observations, and corrects rewards for time limits. If
    the environment returns its own state, that changes it. Return copies.
    """
    ending = scene.ending() if scene.subject.endings else None
    if ending is None or ending.seed is None:
        raise NotExercisedError("no end of an episode that can be repeated")
    env, twin = scene.make(), scene.make("twin")
    act = seeded_start(env, ending)
    twin.restart(ending.seed)
    env.overwrite()
    for _ in range(ending.steps + scene.choose(range(1, 5))):
        one, other = step_both(env, twin, act())
        for name in RESULTS:
            got, expected = getattr(one, name), getattr(other, name)
            should = "as in an instance whose results were not written into"
            yield expect("equal({0}, {1})", got, expected, should=should, like=expected)
        env.overwrite()


actions_unchanged = error(group="ownership", source=STEP)(clauses.actions_unchanged)


actions_not_kept = warning(
    group="ownership",
    source=STEP,
    needs=("seeding",),
    after=(*DETERMINISTIC, "actions_unchanged"),
    variant=in_one_array,
)(comparing.actions_not_kept)
