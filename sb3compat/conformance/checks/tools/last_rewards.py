"""The rewards of the last steps of episodes are those of their actions, as in all other steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sb3compat.conformance.checks.tools.comparing import all_of
from sb3compat.conformance.checks.tools.evidence import FEWEST, STEPS, followed
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Record
from sb3compat.conformance.rows import Episode, by_row
from sb3compat.conformance.values import Several, Value

paid_ahead = PRELUDE["paid_ahead"]


def last_reward_like_others(record: Record) -> Iterator[Demand]:
    """The reward of the last step of an episode is that of its action, as in other steps.

    Typical mistakes: the reset within the step sets back the array of rewards before it is
    returned, so that the reward of each last step is 0; a wrapper computes the reward from the
    first observation of the next episode. The one can be told where no other reward is 0, the other
    where rewards follow from observations and actions by a simple formula.
    """
    yield from all_of(_rewards_at_the_limit, _rewards_of_their_own_step)(record)


def _rewards_at_the_limit(record: Record) -> Iterator[Demand]:
    """The rewards of truncations are not all 0, where those of no other step are."""
    found = [e for row in by_row(record) for e in row]
    cuts = [e for e in found if e.cut]
    others = [float(step.copies["rewards"][e.row]) for e in found for step in e.before_end]
    if len(cuts) < FEWEST or not all(others) or len(set(others)) < STEPS:
        raise NotExercisedError(
            "few episodes were truncated, or other steps have the reward 0, too"
        )
    last = cuts[-1].end.rewards[cuts[-1].row]
    should = (
        f"other than 0, as in all other steps; in the last ones of {len(cuts)} episodes it is 0"
    )
    lasts = Several([e.end.rewards[e.row] for e in cuts])
    yield expect("any({0})", lasts, last, what="{1}", should=should, row=cuts[-1].row)


def _rewards_of_their_own_step(record: Record) -> Iterator[Demand]:
    """Last steps are not rewarded for the first observations of the next episodes."""
    for i, found in enumerate(by_row(record)):
        pairs = followed(found)
        if not all(isinstance(step.copies["actions"], np.ndarray | list) for step in record.steps):
            continue
        others = [part for e in found for part in _steps(e)[: len(e.before_end)]]
        if len(pairs) < FEWEST or len(others) < 2 * STEPS:
            continue
        lasts = [_steps(episode)[-1] for episode, _ in pairs]
        firsts = [after.first for _, after in pairs]
        every = (*zip(*others, strict=True), *zip(*lasts, strict=True), firsts)
        ahead = paid_ahead(*([value.value for value in values] for values in every))
        if ahead is None:
            continue
        record.judged = True
        if ahead:
            yield expect(
                "not paid_ahead({0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8})",
                *map(Several, every),
                lasts[-1][-1],
                what="{9}",
                should="that of the step: at each end it follows from the first observation of the "
                "next episode, as the other rewards do from those that their steps lead to",
                row=i,
            )
    raise NotExercisedError("no formula for the rewards is found, or too few episodes ended")


def _steps(episode: Episode) -> list[Sequence[Value]]:
    """For each step the observation before it, the action, the observation after it, the reward."""
    i, seen = episode.row, episode.seen
    return [
        (before, step.actions[i], after, step.rewards[i])
        for step, before, after in zip(episode.steps, seen[:-1], seen[1:], strict=True)
    ]
