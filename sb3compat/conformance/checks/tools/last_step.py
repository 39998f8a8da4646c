"""Is the last observation of a truncated episode the one after the last action?

A last observation that equals the one before proves nothing: there are walls. But where actions
show in the observation of the step before, and after none of them the last observation is another,
it is an old one. An episode may end in the same place whatever is done, so a last observation that
equals other last ones says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sb3compat.conformance.findings import EnvFailureError, NotExercisedError
from sb3compat.conformance.play import Play
from sb3compat.conformance.program.calls import opening, stepping
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.subject.actions import batch_source
from sb3compat.conformance.subject.subject import Ending

# The time for all programs of one comparison.
_MOST_SECONDS = 1.0
# So many actions at least, so that not all of them lead into walls.
_FEWEST_ACTIONS = 3
# So many other seeds must show the same.
_MORE_SEEDS = 10


@dataclass(frozen=True)
class Stale:
    """A last observation that is the one before, whatever the last action is.

    Attributes:
        row: The row.
        ending: The way there.
        next_to_last: Source for the actions of the step before the last.
        last: Source for the actions of the last step.
    """

    row: int
    ending: Ending
    next_to_last: str
    last: str


# Source for the observation of a row in the script of a play, with `{}` for the row.
Source = Callable[[Play], str]


def stale_last_observation(play: Play, last_obs: Source) -> Stale | None:
    """A truncated ending whose last observation is always the one before; None if it is not.

    Args:
        play: The run of the check.
        last_obs: Source for the last observation of a row.

    Raises:
        NotExercisedError: If it cannot be told.
    """
    ways = _suitable(play)
    probe = play.aside()
    try:
        probe.make()
        for ending, actions in ways:
            if found := _seen(probe, ending, actions, last_obs(probe)):
                break
        else:
            raise NotExercisedError("no truncation at which the last action would show")
        suspects = {i: pair for i, pair in found.items() if pair is not None}
        # Under one seed chance may overrule the last action.
        confirmed = 0
        for k in range(1, _MORE_SEEDS + 1):
            if not suspects:
                return None
            other = replace(ending, seed=(ending.seed or 0) + k)
            again = _seen(probe, other, actions, last_obs(probe))
            confirmed += any(again.get(i) is not None for i in suspects)
            suspects = {i: p for i, p in suspects.items() if again.get(i, p) is not None}
    except EnvFailureError:
        play.script.lines[:] = probe.script.lines  # the program that the environment failed in
        raise
    finally:
        probe.script.close()
    if not suspects or confirmed < _MORE_SEEDS / 2:
        return None
    i, pair = next(iter(suspects.items()))
    return Stale(i, ending, pair[0].actions, _batch(play, actions[0]))


def _seen(
    probe: Play, ending: Ending, actions: Sequence[Any], last_obs: str
) -> dict[int, tuple[_Branch, _Branch] | None]:
    """The rows of which it can be told: two branches if all is stale there, else None."""
    branches = _branches(probe, ending, actions, last_obs)
    found: dict[int, tuple[_Branch, _Branch] | None] = {}
    for i in range(probe.n):
        # Two different states before the last step, and all actions there.
        told = [branch for branch in branches if branch.tells(i)]
        pairs = [(a, b) for a in told for b in told if not _equal(a.before[i], b.before[i])]
        if pairs:
            stale = all(branch.is_stale(i) for branch in pairs[0])
            found[i] = pairs[0] if stale else None
    return found


def demand_not_stale(play: Play, last_obs: Source, before: Source) -> None:
    """Demand that last observations of truncated episodes are not the ones before.

    Args:
        play: The run of the check.
        last_obs: Source for the last observation of a row.
        before: Source for the observation of a row in the batch `before`.

    Raises:
        NotExercisedError: If it cannot be told.
    """
    found = stale_last_observation(play, last_obs)
    if found is None:
        return
    play.make()
    for line in opening(play.family, found.ending.setup, found.ending.seed):
        play.run(line)
    for _ in range(found.ending.steps - 2):
        play.step(found.ending.actions)
    play.step(found.next_to_last)
    play.run("before = snapshot(obs)")
    play.step(found.last)
    got, was = (source(play).format(found.row) for source in (last_obs, before))
    should = "the observation after the last action, not the one before it, whatever that action is"
    play.demand(f"not equal({got}, {was})", got, should, found.row)


def _suitable(play: Play) -> list[tuple[Ending, list[Any]]]:
    """The truncated endings that can be repeated, with the last actions to try: all of them."""
    actions = list(play.subject.actions)
    if play.subject.missing(("seeding", "repeatable", "separate_rows")):
        raise NotExercisedError("the last step cannot be repeated without seeds")
    if len(actions) < _FEWEST_ACTIONS - 1:
        raise NotExercisedError("there are too few actions")
    step = max(play.subject.step_seconds, 1e-6)
    found = []
    for ending in play.subject.endings:
        cost = step * ending.steps * len(actions) ** 2
        repeated = ending.truncated and ending.seed is not None and ending.steps > 1
        if repeated and cost < _MOST_SECONDS:
            found.append((ending, actions))
    if not found:
        raise NotExercisedError("no truncation is known")
    return found


@dataclass(frozen=True)
class _Branch:
    """What follows one action before the last: the state, and a last observation by action."""

    actions: str
    before: Sequence[Any]
    moved: Sequence[bool]
    lasts: Sequence[dict[int, Any]]

    def tells(self, i: int) -> bool:
        """Whether row i moved in the step before, and was truncated after each last action."""
        return self.moved[i] and all(i in last for last in self.lasts)

    def is_stale(self, i: int) -> bool:
        return all(_equal(last[i], self.before[i]) for last in self.lasts)


def _branches(probe: Play, ending: Ending, actions: Sequence[Any], last_obs: str) -> list[_Branch]:
    found = []
    for action in actions:
        batch = _batch(probe, action)
        before: list[Any] = []
        moved: list[bool] = []
        lasts: list[dict[int, Any]] = []
        for last in actions:
            state = _to_the_last_step(probe, ending, batch)
            if state is None:
                break
            again, moved = state
            if before and not all(map(_equal, before, again)):
                raise NotExercisedError("the same seed and actions do not lead to the same state")
            before = again
            probe.step(_batch(probe, last))
            lasts.append(dict(_truncated(probe, last_obs)))
        else:
            found.append(_Branch(batch, before, moved, lasts))
    return found


def _to_the_last_step(
    probe: Play, ending: Ending, actions: str
) -> tuple[list[Any], list[bool]] | None:
    """The observations before the last step, and which rows moved; None if a row has ended."""
    for line in opening(probe.family, ending.setup, ending.seed):
        probe.run(line)
    for _ in range(ending.steps - 2):
        probe.run(stepping(probe.family, ending.actions))
        if probe.ended():
            return None
    earlier = _rows(probe)
    probe.step(actions)
    if probe.ended():
        return None
    now = _rows(probe)
    return now, [not _equal(a, b) for a, b in zip(earlier, now, strict=True)]


def _truncated(probe: Play, last_obs: str) -> Iterator[tuple[int, Any]]:
    for i in probe.ended():
        flag = (
            f"infos[{i}].get('TimeLimit.truncated', False)"
            if probe.family == "vec_env"
            else f"truncations[{i}] and not terminations[{i}]"
        )
        if probe.value(f"bool({flag})"):
            yield i, probe.value(f"snapshot({last_obs.format(i)})")


def _rows(probe: Play) -> list[Any]:
    if probe.family == "vec_env":
        return [probe.value(f"snapshot(row(obs, {i}))") for i in range(probe.n)]
    space = "env.single_observation_space"
    return [probe.value(f"snapshot(part({space}, obs, {i}))") for i in range(probe.n)]


def _batch(play: Play, action: Any) -> str:
    return batch_source(play.family, [action] * play.n)


def _equal(a: object, b: object) -> bool:
    return bool(PRELUDE["equal"](a, b))
