"""Two instances that get the same calls, save for one difference: `env` and `twin`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.actions import other_action
from sb3compat.conformance.checks.tools.spaces import at
from sb3compat.conformance.findings import EnvFailureError, NotExercisedError, short
from sb3compat.conformance.play import Play
from sb3compat.conformance.program.calls import opening
from sb3compat.conformance.subject.subject import Ending
from sb3compat.conformance.subject.traits import floats


class Twins:
    """Two new VecEnvs, `env` and `twin`, that get the same calls save for one difference.

    Args:
        play: The run of the check.
        ending: The actions; None to draw them.
    """

    def __init__(self, play: Play, ending: Ending | None = None) -> None:
        self.play, self.ending = play, ending
        seed = ending.seed if ending is not None else None
        self.seed = play.draw_seed() if seed is None else seed
        play.run("env, twin = make_env(), make_env()")

    def reset(self, *, seeded: bool = True) -> None:
        """Reset both."""
        # Both are seeded first: of two that share a generator, one would look seeded otherwise.
        for env in ("env", "twin") if seeded else ():
            self.play.run(f"{env}.seed({self.seed})")
        for env in ("env", "twin"):
            self.play.reset(None, env)

    def step(self) -> None:
        """Step both with the same actions."""
        self.choose()
        self.play.step("deepcopy(actions)")
        self.play.step("actions", "twin")

    def choose(self) -> None:
        """Assign the actions of the next step."""
        if self.ending is None:
            self.play.run(f"actions = {self.play.actions()}")
        else:
            if self.ending.setup and not self.play.script.steps:
                self.play.run(self.ending.setup)
            self.play.run(f"actions = {self.ending.actions}")

    def steps(self, after: int = 3, most: int = 6) -> Iterator[int]:
        """Step both: until some steps after an end, or some steps if no ending is known."""
        left = self.play.draw(st.integers(1, most)) if self.ending is None else -1
        for number in range(1, 1000 if self.ending is None else 3 * self.ending.steps + 20):
            self.step()
            yield number
            if left < 0 and self.play.ended():
                left = after + 1
            left -= 1
            if left == 0:
                return

    def demand_same(self, should: str) -> None:
        """Demand that both returned the same, row by row."""
        for i in range(self.play.n):
            self.play.demand(
                f"equal(row(obs, {i}), row(twin_obs, {i}))",
                f"row(obs, {i})",
                self._as("obs", i, should),
                i,
            )
        if self.play.script.steps:
            for name in ("rewards", "dones"):
                if np.shape(self.play.value(name))[:1] != (self.play.n,):
                    # Other checks judge the shape.
                    other = short(self.play.value(f"twin_{name}"), 80)
                    self.play.demand(f"equal({name}, twin_{name})", name, f"{other}, {should}")
                    continue
                for i in range(self.play.n):
                    self.play.demand(
                        f"equal({name}[{i}], twin_{name}[{i}])",
                        f"{name}[{i}]",
                        self._as(name, i, should),
                        i,
                    )

    def _as(self, name: str, i: int, should: str) -> str:
        expression = f"row(twin_obs, {i})" if name == "obs" else f"twin_{name}[{i}]"
        return f"{short(self.play.value(expression), 80)}, {should}"


def start_at(play: Play, ending: Ending, *, twin: bool = False) -> int:
    """Make the environment, and a twin if wanted, and reset with the seed of an ending.

    Raises:
        NotExercisedError: If there is no seed.
    """
    if ending.seed is None:
        raise NotExercisedError("it takes no seeds")
    play.make()
    if twin:
        play.run("twin = make_env()")
    for line in opening(play.family, ending.setup, ending.seed):
        play.run(line)
    if twin:
        play.reset(ending.seed, "twin")
    return ending.seed


def step_both(play: Play, actions: str, other_in: int | None = None) -> None:
    """Step the environment and its twin, and reset rows in both where the caller has to.

    Args:
        play: The run of the check.
        actions: Source for the actions.
        other_in: The row in which the twin gets another action.
    """
    rows = play.awaiting_reset()
    if rows:
        play.reset_rows(rows, "twin")
    play.run(f"actions = {actions}")
    twins = "actions" if other_in is None else other_action(play, other_in)
    play.go_on("deepcopy(actions)")
    play.step(twins, "twin")


def both_to_ending(play: Play, behind: int = 0) -> list[int]:
    """Step both to the first end of an episode; returns the rows that ended.

    Args:
        play: The run of the check.
        behind: How many steps the twin stays behind.
    """
    ending = play.ending()
    start_at(play, ending, twin=True)
    for number in range(1, ending.steps + 1):
        if number <= ending.steps - behind:
            step_both(play, ending.actions)
        else:
            play.run(f"actions = {ending.actions}")
            play.go_on("actions")
        if play.ended() and number < ending.steps:
            raise NotExercisedError("an episode ended earlier than before")
    if not play.ended():
        raise NotExercisedError("the episode did not end again")
    return play.ended()


def demand_like_twin(play: Play, name: str, i: int, why: str) -> None:
    """Demand of a VectorEnv that row i of a result is that of the twin."""
    got, expected = at(play, name, i), at(play, f"twin_{name}", i)
    play.demand(f"equal({got}, {expected})", got, f"{short(play.value(expected))}, {why}", i)


def demand_no_reset_by_ending(play: Play, begin: Callable[[list[int]], None]) -> None:
    """Demand that an ending step does not return the result of a reset just before it.

    Args:
        play: The run of the check.
        begin: Has these rows begin their next episodes.

    Raises:
        NotExercisedError: If rows share a generator, so that the twin would begin elsewhere; or if
            an end may equal a start by chance.
    """
    if not (play.subject.capabilities.get("row_seeds") or play.n == 1):
        raise NotExercisedError("rows have no seeds of their own")
    rows = both_to_ending(play, behind=1)
    play.run("last = deepcopy(obs)")
    play.run("twin_obs, twin_infos = twin.reset()")
    begin(rows)
    # Where steps draw as well, the twin begins elsewhere: fractions are then not equal by chance.
    rows = [i for i in rows if (floats(play.value(at(play, "twin_obs", i))) % 1).any()]
    if not rows:
        raise NotExercisedError("an end may equal a start by chance")
    for i in rows:
        last, first, known = (at(play, name, i) for name in ("last", "obs", "twin_obs"))
        play.demand(
            f"not equal({last}, {known}) or equal({first}, {known})",
            last,
            f"the last observation, not that of a reset: {short(play.value(known))}",
            i,
        )


def demand_last_as_in_first_episode(play: Play, last: Callable[[str, int], str]) -> None:
    """Demand that last observations do not depend on episodes that came before.

    Under one seed and the same actions, an instance that has ended others does as a new one.

    Args:
        play: The run of the check.
        last: Source for the last observation of a row, of `env` or of `twin` by this prefix.

    Raises:
        NotExercisedError: If nothing can be seeded, or the two differ before the last step.
    """
    if play.subject.missing(("seeding",)):
        raise NotExercisedError("it takes no seeds")
    ending = play.ending()
    seed = start_at(play, ending, twin=True)
    play.reset(seed + play.n, "twin")
    over = "twin_dones" if play.family == "vec_env" else "twin_terminations | twin_truncations"
    for _ in range(3 * ending.steps + 10):
        play.run(f"actions = {ending.actions}")
        play.step("actions", "twin")
        if play.value(f"({over}).any()"):
            break
    else:
        raise NotExercisedError("the episode did not end again")
    for line in opening(play.family, ending.setup, seed):
        play.run(line)
    play.reset(seed, "twin")
    for number in range(1, ending.steps + 1):
        if not play.value("equal(obs, twin_obs)"):
            raise NotExercisedError("two instances under one seed are not alike")
        play.run(f"actions = {ending.actions}")
        play.step("deepcopy(actions)")
        try:
            play.step("actions", "twin")
        except EnvFailureError as error:  # other checks judge that, too
            raise NotExercisedError("an instance raised after another episode") from error
        if number < ending.steps and (play.ended() or play.value(f"({over}).any()")):
            raise NotExercisedError("an episode ended earlier than before")
    rows = [i for i in play.ended() if play.value(f"bool(({over})[{i}])")]
    if not rows:
        raise NotExercisedError("the episodes of both do not end together")
    for i in rows:
        got, other = last("twin_", i), last("", i)
        should = f"{short(play.value(other), 80)}, as in an instance that has ended no episode"
        play.demand(f"equal({got}, {other})", got, should, i)


def reset_like_env(play: Play, name: str) -> str:
    """Source that resets another environment with the seed of the first reset."""
    calls = (re.search(r"\benv\.reset\((.*)\)", line) for line in play.script.lines)
    return f"{name}.reset({next(call[1] for call in calls if call)})"
