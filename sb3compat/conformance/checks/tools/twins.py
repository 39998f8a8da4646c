"""Two instances that get the same calls, save for one difference: `env` and `twin`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.spaces import at
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.play import Play
from sb3compat.conformance.program.calls import opening
from sb3compat.conformance.subject.subject import Ending


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


def step_both(play: Play, actions: str) -> None:
    """Step the environment and its twin, and reset rows in both where the caller has to.

    Args:
        play: The run of the check.
        actions: Source for the actions.
    """
    rows = play.awaiting_reset()
    if rows:
        play.reset_rows(rows, "twin")
    play.run(f"actions = {actions}")
    play.go_on("deepcopy(actions)")
    play.step("actions", "twin")


def demand_like_twin(play: Play, name: str, i: int, why: str) -> None:
    """Demand of a VectorEnv that row i of a result is that of the twin."""
    got, expected = at(play, name, i), at(play, f"twin_{name}", i)
    play.demand(f"equal({got}, {expected})", got, f"{short(play.value(expected))}, {why}", i)
