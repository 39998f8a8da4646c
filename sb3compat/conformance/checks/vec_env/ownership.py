"""What a VecEnv has handed out belongs to the caller."""

from __future__ import annotations

from collections.abc import Iterator

from sb3compat.conformance.checks.tools import clauses, comparing
from sb3compat.conformance.checks.tools.clauses import unchanged_by
from sb3compat.conformance.checks.vec_env.marks import DETERMINISTIC, ENDINGS, marked
from sb3compat.conformance.contract import BASICS, SB3_GUIDE
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.record import Record
from sb3compat.conformance.variants import in_one_array, with_writing

_BASICS = BASICS["vec_env"]

error, warning = marked(group="ownership", source=SB3_GUIDE)


@error()
def outputs_unchanged_by_later_steps(record: Record) -> Iterator[Demand]:
    """Later steps do not change the observations, rewards and dones that a step returned.

    Algorithms keep the last observations during the next step, and store both. If the
    environment writes each batch into the same array, both are equal. Return copies, as
    `DummyVecEnv` does, or new arrays.
    """
    for call in record.batches:
        yield from unchanged_by(record, call, "step", "a later step")


@warning(after=(*_BASICS, "outputs_unchanged_by_later_steps"))
def outputs_unchanged_by_reset(record: Record) -> Iterator[Demand]:
    """A reset does not change the observations, rewards and dones that a step returned.

    Otherwise a caller who keeps the last observations before a reset finds others in their
    place.
    """
    for call in record.steps:
        yield from unchanged_by(record, call, "reset", "the reset")


@error(after=ENDINGS)
def terminal_observation_not_aliased(record: Record) -> Iterator[Demand]:
    """`terminal_observation` has memory of its own, which nothing writes to later.

    A view of a row of `obs`, or of a buffer, changes with it: when the row is reset, or at the
    next end. Typical mistake: `terminal_observation = obs[i]`.
    """
    for step in record.endings:
        for i in step.ended:
            last = step.infos.held[i]["terminal_observation"]
            yield expect(
                "not overlap({0}, {1})",
                last,
                step.obs.held,
                should="an array of its own, not a view of obs",
                row=i,
            )
            was = step.infos[i]["terminal_observation"]
            should = "the last observation of the episode, as it was"
            yield comparing.same(last, was, should, i)


@error(after=(*_BASICS, "infos_n_dicts"))
def infos_unchanged_by_later_steps(record: Record) -> Iterator[Demand]:
    """Later steps do not change the infos that a step returned.

    Algorithms and callbacks keep them, and read episode statistics after the rollout. Typical
    mistake: one dict for each row that each step fills again. Make new dicts.
    """
    for step in record.steps:
        for i in record.rows if record.follows(step, "step") else ():
            was = step.infos[i]
            now = step.infos.held[i]
            should = "the info that was returned, not changed by a later step"
            yield expect("unchanged({0}, {1})", now, was, should=should, row=i, like=was)


writing_outputs_does_not_change_env = error(
    needs=("seeding",), after=DETERMINISTIC, variant=with_writing
)(comparing.writing_outputs_does_not_change_env)


actions_unchanged = error()(clauses.actions_unchanged)


actions_not_kept = warning(
    needs=("seeding",), after=(*DETERMINISTIC, "actions_unchanged"), variant=in_one_array
)(comparing.actions_not_kept)
