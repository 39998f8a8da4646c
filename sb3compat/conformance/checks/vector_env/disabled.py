"""Ends of episodes in DISABLED mode: nothing happens until the caller resets the row."""

from __future__ import annotations

from collections.abc import Iterator

from sb3compat.conformance.checks.tools.comparing import (
    all_of,
    last_as_in_first_episode,
    last_is_not_of_a_reset,
    no_reset_by_a_step,
)
from sb3compat.conformance.checks.tools.last_observations import lasts_unlike_starts
from sb3compat.conformance.checks.tools.singles import firsts_like_singles, lasts_like_singles
from sb3compat.conformance.checks.tools.standstill import lasts_moved_on
from sb3compat.conformance.checks.vector_env.marks import EPISODES, SYNC, marked
from sb3compat.conformance.contract import GYM_AUTORESET
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.record import Record
from sb3compat.conformance.scene import Scene

error, warning = marked(group="episode end: DISABLED", source=SYNC, modes=("Disabled",))


@error(
    source=GYM_AUTORESET,
    after=EPISODES,
    without_reference=all_of(
        last_is_not_of_a_reset,
        last_as_in_first_episode,
        no_reset_by_a_step,
        lasts_unlike_starts,
        lasts_moved_on,
    ),
)
def no_reset_unasked(record: Record) -> Iterator[Demand]:
    """In DISABLED mode a row that ended is not reset before the caller asks for it.

    The step that ends an episode returns its last observation, and the caller's reset begins the
    next episode. If the row was reset before, an episode's start is lost, or the value of a
    truncated state is that of a fresh one. Remove the autoreset.
    """
    yield from lasts_like_singles(record)
    yield from firsts_like_singles(record, "the first of the next episode, as the caller began it")


@warning(after=EPISODES)
def stepping_ended_row_rejected(scene: Scene) -> Iterator[Demand]:
    """In DISABLED mode `step` raises while a row that ended has not been reset.

    Any result would be a transition after the end of an episode, or one that mixes two episodes.
    Note the rows that ended, and raise. It is a warning, as `AsyncVectorEnv` does not, up to 1.4.
    """
    env = scene.make()
    rows = env.to_an_end(scene.ending()).ended
    error = scene.caught(env.step, scene.actions()).error
    should = f"an exception: rows {rows} have ended"
    yield expect("{0} is not None", error, should=should, row=rows[0])


@error(after=(*EPISODES, "stepping_ended_row_rejected"))
def masked_reset_restarts_only_masked(scene: Scene) -> Iterator[Demand]:
    """In DISABLED mode a masked reset restarts the rows under the mask, and no other that ended.

    The other rows that ended still wait for their reset. A masked reset that clears the notes of
    all rows lets the next step run on in an episode that is over. Clear the notes of the rows
    under the mask only.
    """
    env = scene.make()
    rows = env.to_an_end(scene.ending()).ended
    others = [i for i in scene.rows if i != rows[-1]]
    if others and scene.choose(("others", "all")) == "others":
        env.reset_rows([scene.choose(others)])
        error = scene.caught(env.step, scene.actions()).error
        row = rows[-1]
        should = f"an exception: row {row} is not reset yet"
        yield expect("{0} is not None", error, should=should, row=row)
        return
    env.reset_rows(rows)
    error = scene.caught(env.step, scene.actions()).error
    should = f"None: the rows that ended ({rows}) have been reset"
    yield expect("{0} is None", error, should=should)
