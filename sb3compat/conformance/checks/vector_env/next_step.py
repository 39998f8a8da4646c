"""Ends of episodes in NEXT_STEP mode: the last observation, then a step that only resets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.endings import episode_ends
from sb3compat.conformance.checks.tools.last_step import demand_not_stale
from sb3compat.conformance.checks.tools.lockstep import demand_like_single, lockstep
from sb3compat.conformance.checks.tools.spaces import at
from sb3compat.conformance.checks.tools.twins import (
    both_to_ending,
    demand_last_as_in_first_episode,
    demand_like_twin,
    demand_no_reset_by_ending,
    step_both,
)
from sb3compat.conformance.checks.vector_env.marks import DETERMINISTIC, error
from sb3compat.conformance.contract import BASICS, GYM_AUTORESET
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.play import Play
from sb3compat.conformance.record import Record

MODES = ("NextStep",)
GROUP = "episode end: NEXT_STEP"
# The declared mode comes first, or all these checks would report the same mistake.
AFTER = (*BASICS["vector_env"], "autoreset_mode_matches_behaviour")
AFTER_SEEDED = (*DETERMINISTIC, "autoreset_mode_matches_behaviour")


@error(group=GROUP, source=GYM_AUTORESET, modes=MODES, after=AFTER)
def done_step_returns_final_obs(play: Play) -> None:
    """In NEXT_STEP mode the step that ends an episode returns its last observation.

    The value of a truncated state is computed from it. If the first observation of the next
    episode is in its place, that value is wrong. Leave the reset to the next step. Without a
    reference, the check fails if each last observation equals the next first one, or that of the
    step before, whatever the last action is.
    """
    if play.subject.referenced:
        i = play.draw(st.integers(0, play.n - 1))
        for event in lockstep(play, i, episodes=play.draw(st.integers(1, 2))):
            if event == "end":
                demand_like_single(play, i, "the last one of the episode")
        return
    play.without_reference()
    way = play.draw(st.sampled_from(("first", "step", "reset", "episode")))
    if way == "episode":
        demand_last_as_in_first_episode(play, lambda env, i: at(play, f"{env}obs", i))
        return
    if way == "reset":
        demand_no_reset_by_ending(play, lambda _: play.step(play.actions()))
        return
    if way == "step":
        demand_not_stale(play, partial(at, name="obs", i=None), partial(at, name="before", i=None))
        return
    i = episode_ends(play)
    play.demand(
        "not all(map(equal, last, first))",
        "last",
        f"the last ones of their episodes, not the first of the next: {short(play.value('first'))}",
        i,
    )


@error(group=GROUP, source=GYM_AUTORESET, modes=MODES, after=AFTER_SEEDED)
def reset_step_ignores_action(play: Play) -> None:
    """In NEXT_STEP mode the step after an ending only resets the row, whatever its action.

    An environment that resets and then applies the action loses the first observation and one
    transition. Skip the sub-environment's step in the step that resets it.
    """
    rows = both_to_ending(play)
    i = play.draw(st.sampled_from(rows))
    step_both(play, play.actions(), other_in=i)
    got = at(play, "twin_obs", i)
    expected = at(play, "obs", i)
    play.demand(
        f"equal({got}, {expected})",
        got,
        f"{short(play.value(expected))}, as with another action",
        i,
    )


@error(
    group=GROUP,
    source=GYM_AUTORESET,
    modes=MODES,
    after=(*AFTER, "rewards_shape", "reset_step_flags_false"),
)
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


@error(group=GROUP, source=GYM_AUTORESET, modes=MODES, after=AFTER)
def reset_step_flags_false(record: Record) -> Iterator[Demand]:
    """In NEXT_STEP mode the step that resets a row neither terminates nor truncates it.

    A flag there ends an episode without a step. Flags are often computed for all rows from the
    old state: set them to false in the rows that are reset.
    """
    for step, i in record.reset_steps:
        for flags in (step.terminations, step.truncations):
            yield expect("not {0}", flags[i], should="False in the step that resets the row", row=i)


@error(
    group=GROUP,
    source=GYM_AUTORESET,
    needs=("repeatable",),
    modes=MODES,
    after=(*AFTER_SEEDED, "reset_step_ignores_action", "reset_clears_pending_autoreset"),
)
def one_reset_per_episode(play: Play) -> None:
    """In NEXT_STEP mode a row is reset once after each episode.

    A second reset, in the ending step or in the one after the next, loses an episode's start and
    advances the row's random numbers, so that the row no longer agrees with a single environment.
    The rows are compared with single environments, or, if each row has a seed of its own, with a
    `reset()` of all rows at the same point.
    """
    if play.subject.referenced:
        i = play.draw(st.integers(0, play.n - 1))
        after = False
        for event in lockstep(play, i, 3):
            after = after or event == "reset"
            if after and event != "end":
                demand_like_single(play, i, "as after a single reset")
        return
    if not (play.subject.capabilities.get("row_seeds") or play.n == 1):
        raise NotExercisedError("rows have no seeds of their own")
    rows = both_to_ending(play)
    play.run("twin_obs, twin_infos = twin.reset()")
    play.step(play.actions())
    i = play.draw(st.sampled_from(rows))
    _row_agrees(play, i)
    for _ in range(2):
        step_both(play, play.actions())
        if i in play.ended():
            return
        _row_agrees(play, i)


def _row_agrees(play: Play, i: int) -> None:
    demand_like_twin(play, "obs", i, "as in an environment whose rows were reset by reset()")
