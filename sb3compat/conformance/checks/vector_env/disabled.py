"""Ends of episodes in DISABLED mode: nothing happens until the caller resets the row."""

from __future__ import annotations

from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.endings import episode_ends
from sb3compat.conformance.checks.tools.lockstep import demand_like_single, lockstep
from sb3compat.conformance.checks.tools.spaces import at
from sb3compat.conformance.checks.tools.twins import (
    both_to_ending,
    demand_last_as_in_first_episode,
    demand_no_reset_by_ending,
)
from sb3compat.conformance.checks.vector_env.marks import SYNC, error
from sb3compat.conformance.contract import BASICS, GYM_AUTORESET
from sb3compat.conformance.findings import short
from sb3compat.conformance.play import Play

MODES = ("Disabled",)
AFTER = (*BASICS["vector_env"], "autoreset_mode_matches_behaviour")
GROUP = "episode end: DISABLED"


@error(group=GROUP, source=GYM_AUTORESET, modes=MODES, after=AFTER)
def no_reset_unasked(play: Play) -> None:
    """In DISABLED mode a row that ended is not reset before the caller asks for it.

    The step that ends an episode returns its last observation, and the caller's reset begins the
    next episode. If the row was reset before, an episode's start is lost, or the value of a
    truncated state is that of a fresh one. Remove the autoreset.
    """
    choice = play.draw(st.integers(0, 2))
    if play.subject.referenced:
        i = play.draw(st.integers(0, play.n - 1))
        for event in lockstep(play, i, 1, episodes=play.draw(st.integers(1, 2))):
            if event in ("end", "reset"):
                demand_like_single(play, i, "as in its single environment")
        return
    play.without_reference()
    if choice == 0:
        demand_no_reset_by_ending(play, play.reset_rows)
    elif choice == 1:
        demand_last_as_in_first_episode(play, lambda env, i: at(play, f"{env}obs", i))
    elif play.draw(st.booleans()):
        _no_reset_by_step(play)
    else:
        i = episode_ends(play)
        should = f"the last ones, not the first of the next: {short(play.value('first'))}"
        play.demand("not all(map(equal, last, first))", "last", should, i)


def _no_reset_by_step(play: Play) -> None:
    """If a row that ended can be stepped, that step is no reset."""
    rows = both_to_ending(play)
    play.run("last = deepcopy(obs)")
    play.run(f"actions = {play.actions()}")
    play.run("result = []")
    if play.value("caught(lambda: result.extend(env.step(actions)))") is not None:
        return
    play.script.lines.append("result.extend(env.step(actions))")
    play.script.steps += 1
    play.reset_rows(rows, "twin")
    for i in rows:
        last, first, known = (at(play, name, i) for name in ("last", "result[0]", "twin_obs"))
        play.demand(
            f"equal({last}, {known}) or not equal({first}, {known})",
            first,
            "something else than a reset gives: it was not asked for",
            i,
        )


@error(group=GROUP, source=SYNC, modes=MODES, after=AFTER)
def stepping_ended_row_rejected(play: Play) -> None:
    """In DISABLED mode `step` raises while a row that ended has not been reset.

    Any result would be a transition after the end of an episode, or one that mixes two episodes.
    Note the rows that ended, and raise. `AsyncVectorEnv` does not, up to 1.4.
    """
    play.to_ending()
    play.run(f"actions = {play.actions()}")
    play.run("error = caught(lambda: env.step(actions))")
    rows = play.ended()
    play.demand("error is not None", "error", f"an exception: rows {rows} have ended", rows[0])


@error(
    group=GROUP,
    source=SYNC,
    modes=MODES,
    after=(*AFTER, "stepping_ended_row_rejected"),
)
def masked_reset_restarts_only_masked(play: Play) -> None:
    """In DISABLED mode a masked reset restarts the rows under the mask, and no other that ended.

    The other rows that ended still wait for their reset. A masked reset that clears the notes of
    all rows lets the next step run on in an episode that is over. Clear the notes of the rows
    under the mask only.
    """
    rows = play.to_ending()
    others = [i for i in range(play.n) if i != rows[-1]]
    if others and not play.draw(st.booleans()):
        play.reset_rows([play.draw(st.sampled_from(others))])
        play.run(f"error = caught(lambda: env.step({play.actions()}))")
        row = rows[-1]
        play.demand("error is not None", "error", f"an exception: row {row} is not reset yet", row)
        return
    play.reset_rows(rows)
    play.run(f"error = caught(lambda: env.step({play.actions()}))")
    play.demand("error is None", "error", f"None: the rows that ended ({rows}) have been reset")
