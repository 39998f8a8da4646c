"""Two instances under a seed and the next: row i of the one is row i - 1 of the other.

Where rows differ by their seeds only, the two rows do the same for the same actions. Rows may
differ by design: in their time limits, for example. So a row is judged at the end of an episode
only if it has done all the same until there. A first observation that differs must also be one that
no reset gave: rows that share the generator of their resets draw others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.spaces import obs_of
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.play import Play
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.subject.actions import (
    same_sample_seed_source,
    same_sample_source,
    sample_seed_source,
)

# The time for one program, the ends of episodes in it (fewer if long), and its steps besides.
_MOST_SECONDS, _ENDS, _LONG, _STEPS = 1.0, 3, 20, 12
# So many steps, so that chance is no explanation.
_FEWEST = 4

equal = PRELUDE["equal"]


@dataclass(frozen=True)
class Event:
    """The end of an episode in which a row has done the same as its counterpart.

    Attributes:
        row: The row of `env`; its counterpart is the one before, of `twin`.
        first: Whether it is about the first observation of the next episode, not the last one.
        several: Whether other rows ended in the same step, here or there.
    """

    row: int
    first: bool
    several: bool


class Shifted:
    """`env` and `twin`, stepped side by side, with each row's actions in its counterpart.

    Attributes:
        pace: The rows that have done as their counterparts since their episodes began.
        moves: How often each row has moved, of `env` and of `twin`.
        rewards: Those of each step before a row ended or left the pace, of `env` and of `twin`.

    Args:
        play: The run of the check.
        together: Whether all rows take the same actions, so that they end together.

    Raises:
        NotExercisedError: If there is one row only.
    """

    def __init__(self, play: Play, *, together: bool) -> None:
        if play.n < 2:
            raise NotExercisedError("there is one row only")
        self.play, self.together = play, together
        self.pace = set(range(1, play.n))
        self.moves = np.zeros((2, play.n), int)
        self.rewards: list[tuple[list[float], list[float]]] = []
        self._paid = False
        seed = play.draw_seed()
        play.run("env, twin = make_env(), make_env()")
        self._actions = self._policy()
        play.reset(seed)
        play.reset(seed + 1, "twin")
        play.run("start, twin_start = snapshot(obs), snapshot(twin_obs)")
        self._obs = self._rows()

    def _policy(self) -> str:
        """Source for the actions of each step; empty to draw them."""
        subject, chosen = self.play.subject, self.play.draw(st.integers(0, 99))
        if isinstance(subject.actions[0], dict | tuple):
            return ""
        if not self.together:
            self.play.run(sample_seed_source(subject, chosen))
            return self.play.sample()
        constant = [ending.actions for ending in subject.endings if not ending.setup]
        if self.play.draw(st.booleans()) and constant:
            return constant[self.play.draw(st.integers(0, len(constant) - 1))]
        self.play.run(same_sample_seed_source(subject, chosen))
        return same_sample_source(subject)

    def steps(self) -> Iterator[list[Event]]:
        """Step both until rows have ended a few times; yields what can be judged, as it comes."""
        steps = max((ending.steps for ending in self.play.subject.endings), default=0)
        most = _STEPS + steps * (_ENDS * 3 if steps < _LONG else 3)
        affordable = int(_MOST_SECONDS / max(2 * self.play.subject.step_seconds, 1e-6))
        ends = 0
        due: dict[int, bool] = {}
        for number in range(min(most, max(affordable, 2 * steps))):
            if due:
                self.play.run("last = snapshot(obs)")
            self._step()
            events = self._events(due)
            yield events
            due = {event.row: event.several for event in events if not event.first}
            if self.play.subject.mode == "Disabled":
                yield self._reset_rows(due)
            if self.play.subject.mode != "NextStep":
                due = {}
            ends += bool(self.play.ended())
            if ends > _ENDS * self.play.n or (not self.pace and number > _STEPS):
                return

    def _step(self) -> None:
        self.play.run(f"actions = {self._actions or self.play.actions()}")
        self.play.step("deepcopy(actions)")
        self.play.step("shifted(actions)", "twin")

    def _reset_rows(self, due: dict[int, bool]) -> list[Event]:
        """Reset the rows that ended, as the caller has to in DISABLED mode."""
        rows = {"env": self.play.ended(), "twin": self._twin_ended()}
        if any(rows.values()):
            self.play.run("last = snapshot(obs)")
        for env, ended in rows.items():
            if ended:
                self.play.reset_rows(ended, env)
        self._obs = self._rows()
        return self._firsts(due)

    def _events(self, due: dict[int, bool]) -> list[Event]:
        """What can be judged after a step, in which `due` rows were reset by NEXT_STEP mode."""
        ended, others = set(self.play.ended()), set(self._twin_ended())
        several = len(ended) > 1 or len(others) > 1
        before, self._obs = self._obs, self._rows()
        for side in range(2):
            pairs = zip(before[side], self._obs[side], strict=True)
            self.moves[side] += [not equal(a, b) for a, b in pairs]
        events = []
        for i in sorted(self.pace - due.keys()):
            over = (i in ended, i - 1 in others)
            if over == (True, True):
                events.append(Event(i, False, several))
            elif any(over) or not self._alike(i):
                self.pace.discard(i)
        self._paid = not ended | others and len(self.pace) == self.play.n - 1
        if self._paid:
            self.rewards.append((self.play.value(_LISTED[0]), self.play.value(_LISTED[1])))
        if self.play.subject.mode in (None, "SameStep"):
            due = {event.row: several for event in events}
        return events + self._firsts(due)

    def _firsts(self, due: dict[int, bool]) -> list[Event]:
        """The first observations of these rows; those that differ are in pace no more."""
        events = [Event(i, True, several) for i, several in due.items() if i in self.pace]
        self.pace -= {event.row for event in events if not self._alike(event.row)}
        return events

    def _alike(self, i: int) -> bool:
        return bool(equal(self._obs[0][i], self._obs[1][i - 1]))

    def _rows(self) -> tuple[list[object], list[object]]:
        return self.play.value("rows_of(env, obs)"), self.play.value("rows_of(twin, twin_obs)")

    def _twin_ended(self) -> list[int]:
        vec_env = self.play.family == "vec_env"
        flags = "twin_dones" if vec_env else "ended(twin_terminations, twin_truncations)"
        return [int(i) for i in np.flatnonzero(np.asarray(self.play.value(flags)))]

    def judge(self, event: Event) -> None:
        """Demand that the observation of an event is that of the counterpart."""
        play, i = self.play, event.row
        other = f"as in row {i - 1} of another instance, under the same seed and actions"
        if not event.first:
            got, expected = (last_obs(play, j, twin) for j, twin in ((i, ""), (i - 1, "twin_")))
            should = f"{short(play.value(expected), 80)}, {other}"
            play.demand(f"equal({got}, {expected})", got, should, i)
            return
        got, expected = obs_of(play, i), obs_of(play, i - 1, "twin_obs")
        at_once = play.subject.mode in (None, "SameStep")
        last = last_obs(play, i) if at_once else obs_of(play, i, "last")
        if self._alike(i):
            return
        # What no reset gave: the last observation, or the first one of another row.
        row = play.value(got)
        if equal(row, play.value(last)):
            wrong = f"equal({got}, {last})"
        else:
            alike = [j for j in range(play.n) if j != i and equal(self._obs[0][j], row)]
            if not alike:
                return
            wrong = f"equal({got}, {obs_of(play, alike[0])})"
        should = f"{short(play.value(expected), 80)}, {other}"
        play.demand(f"equal({got}, {expected}) or not {wrong}", got, should, i)

    def demand_movement(self) -> None:
        """Demand that no row stands still for ever where its counterpart moves."""
        for i in range(1, self.play.n):
            moves = (int(self.moves[0, i]), int(self.moves[1, i - 1]))
            if min(moves) or max(moves) < _FEWEST:
                continue
            j, twin = (i, "") if not moves[0] else (i - 1, "twin_")
            got, was = (obs_of(self.play, j, f"{twin}{name}") for name in ("obs", "start"))
            should = f"another than in the beginning: {_COUNTERPART} has moved"
            self.play.demand(f"not equal({got}, {was})", got, should, j)

    def demand_own_rewards(self) -> None:
        """Demand that the rewards of a row are not those of another one, in each step so far."""
        if not self._paid or len(self.rewards) < _FEWEST:
            return
        here, there = (np.array([both[k] for both in self.rewards]).T for k in range(2))
        if any(len(np.unique(side, axis=0)) < self.play.n for side in (here, there)):
            return
        for i in range(1, self.play.n):
            dealt = (there == here[i]).all(axis=1)
            if dealt.any() and not dealt[i - 1] and len(np.unique(here[i])) > 1:
                got, own = f"np.ravel(rewards)[{i}]", f"np.ravel(twin_rewards)[{i - 1}]"
                should = f"{self.play.value(own)}, as in {_COUNTERPART}"
                self.play.demand(f"equal({got}, {own})", got, should, i)


_COUNTERPART = "its counterpart in another instance, under the same seed and actions,"
_LISTED = ("np.ravel(rewards).tolist()", "np.ravel(twin_rewards).tolist()")


def last_obs(play: Play, i: int, twin: str = "") -> str:
    """Source for the last observation of a row that has just ended."""
    if play.family == "vec_env":
        return f"{twin}infos[{i}]['terminal_observation']"
    if play.subject.mode == "SameStep":
        return f"row({twin}infos['final_obs'], {i})"
    return obs_of(play, i, f"{twin}obs")


def demand_rows_alike(play: Play) -> None:
    """Compare rows with their counterparts, where single episodes end.

    Raises:
        NotExercisedError: If the rows differ by more than their seeds, or nothing could be judged.
    """
    shifted = Shifted(play, together=False)
    judged = False
    for events in shifted.steps():
        judged |= bool(events)
        for event in events:
            if not event.several:  # those have a check of their own
                shifted.judge(event)
        shifted.demand_own_rewards()
    shifted.demand_movement()
    if not judged and (play.subject.endings or not shifted.pace):
        raise NotExercisedError("no episode of a row ended as that of the same row elsewhere did")


def demand_endings_together(play: Play) -> None:
    """Compare rows with their counterparts, where several episodes end in one step.

    Raises:
        NotExercisedError: If there was no such step.
    """
    shifted = Shifted(play, together=True)
    judged = False
    for events in shifted.steps():
        for event in events:
            if event.several:
                judged = True
                shifted.judge(event)
    if not judged:
        raise NotExercisedError("no two episodes ended in one step")
