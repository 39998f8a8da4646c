"""Ends of episodes in NEXT_STEP mode: the last observation, then a step that only resets."""

from __future__ import annotations

from collections.abc import Iterator

from sb3compat.conformance.checks.tools.comparing import (
    all_of,
    as_after_a_reset_of_all_rows,
    last_as_in_first_episode,
    last_is_not_of_a_reset,
    way_to_the_end,
    whole_twin_of,
)
from sb3compat.conformance.checks.tools.last_observations import lasts_unlike_starts
from sb3compat.conformance.checks.tools.singles import (
    firsts_like_singles,
    lasts_like_singles,
    obs_like_single,
    steps_after_starts,
)
from sb3compat.conformance.checks.tools.standstill import lasts_moved_on
from sb3compat.conformance.checks.vector_env.marks import DETERMINISTIC, EPISODES, marked
from sb3compat.conformance.contract import GYM_AUTORESET
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Record
from sb3compat.conformance.rows import obs_of
from sb3compat.conformance.variants import (
    after_first_end,
    other_action_beside_the_reset,
    other_action_in_the_reset_step,
)

equal = PRELUDE["equal"]


# The declared mode comes first, or all these checks would report the same mistake.
error, _ = marked(group="episode end: NEXT_STEP", source=GYM_AUTORESET, modes=("NextStep",))


@error(
    after=EPISODES,
    without_reference=all_of(
        lasts_unlike_starts, lasts_moved_on, last_as_in_first_episode, last_is_not_of_a_reset
    ),
)
def done_step_returns_final_obs(record: Record) -> Iterator[Demand]:
    """In NEXT_STEP mode the step that ends an episode returns its last observation.

    The value of a truncated state is computed from it. If the first observation of the next
    episode is in its place, that value is wrong. Leave the reset to the next step. Without a
    reference, the check fails if each last observation equals the next first one, or that of the
    step before.
    """
    yield from lasts_like_singles(record)


@error(after=DETERMINISTIC)
def reset_step_ignores_action(record: Record) -> Iterator[Demand]:
    """In NEXT_STEP mode the step after an ending only resets the row, whatever its action.

    An environment that resets and then applies the action loses the first observation and one
    transition. Skip the sub-environment's step in the step that resets it. The action must not
    count in later steps either: a penalty on jerks, say, must not take it for the last action.
    """
    way = way_to_the_end(record)
    later = after_first_end(record)
    if not later:
        raise NotExercisedError("no step follows an end")
    twin = whole_twin_of(record, other_action_in_the_reset_step)
    if record.running(way[-1]) and not record.subject.capabilities.get("own_generators"):
        control = whole_twin_of(record, other_action_beside_the_reset).steps[len(way)]
        for i in way[-1].ended:
            if not equal(obs_of(record, later[0], i).value, obs_of(record, control, i).value):
                raise NotExercisedError("random numbers of all rows depend on their actions")
        later = later[:1]
    for i in way[-1].ended:
        for one, other in zip(later, twin.steps[len(way) :], strict=False):
            pairs = [(obs_of(twin, other, i), obs_of(record, one, i))]
            pairs += [(other.rewards[i], one.rewards[i])] if one is not later[0] else []
            for got, expected in pairs:
                should = f"{short(expected.value)}, as with another action in the reset step"
                yield expect("equal({0}, {1})", got, expected, should=should, row=i)
            if i in one.ended:
                break


@error(after=(*EPISODES, "rewards_shape", "reset_step_flags_false"))
def reset_step_reward_zero(record: Record) -> Iterator[Demand]:
    """In NEXT_STEP mode the reward of the step that resets a row is 0.

    That step belongs to no episode. Its reward would count in the return of the next one. Write
    zero there after the rewards of all rows are computed.
    """
    for step, i in record.reset_steps:
        yield expect(
            "{0} == 0",
            step.rewards[i],
            should="0 in the step that resets the row",
            row=i,
        )


@error(after=EPISODES)
def reset_step_flags_false(record: Record) -> Iterator[Demand]:
    """In NEXT_STEP mode the step that resets a row neither terminates nor truncates it.

    A flag there ends an episode without a step. Flags are often computed for all rows from the
    old state: set them to false in the rows that are reset.
    """
    for step, i in record.reset_steps:
        for flags in (step.terminations, step.truncations):
            yield expect("not {0}", flags[i], should="False in the step that resets the row", row=i)


@error(
    needs=("repeatable",),
    after=(*DETERMINISTIC, "reset_step_ignores_action", "reset_clears_pending_autoreset"),
    without_reference=as_after_a_reset_of_all_rows,
)
def one_reset_per_episode(record: Record) -> Iterator[Demand]:
    """In NEXT_STEP mode a row is reset once after each episode.

    A second reset, in the ending step or in the one after the next, loses an episode's start and
    advances the row's random numbers, so that the row no longer agrees with a single environment.
    The rows are compared with single environments, or, if each row has a seed of its own and resets
    alone draw random numbers, with a `reset()` of all rows at the same point.
    """
    yield from firsts_like_singles(record, "as after a single reset")
    for each in steps_after_starts(record):
        if each.kind == "step":
            yield obs_like_single(each, "as after a single reset")
