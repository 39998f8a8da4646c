"""One run of a check: it draws a program, runs it on the environment, and demands conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st

from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.program.calls import opening, resetting, resetting_rows, stepping
from sb3compat.conformance.program.script import Script, to_source
from sb3compat.conformance.subject.actions import batch_source, sample_source
from sb3compat.conformance.subject.subject import Ending, Subject

T = TypeVar("T")

NO_REFERENCE = (
    "partly checked: pass the single environments to check fully, --reference "
    "package.module:name, in Python reference=[…]"
)


class Play:
    """The argument of a check: facts about the environment, draws, and a script to extend.

    In the script the environment is `env`, and the results of its last call are `obs`, `rewards`,
    `dones` (or `terminations` and `truncations`) and `infos`.

    Args:
        subject: The environment under test.
        script: Runs statements and writes them down.
        data: Hypothesis' source of draws.
    """

    def __init__(self, subject: Subject, script: Script, data: st.DataObject) -> None:
        self.subject = subject
        self.script = script
        self._data = data
        self.n = subject.num_envs
        self.family = subject.family
        self.run = script.run
        self.value = script.value
        self.demand = script.demand
        # What this run could not test, and what to pass to test it; empty if the whole contract was
        # tested.
        self.missing = ""
        # Whether a program with other draws may be smaller.
        self.drew = False

    def partly(self, missing: str) -> None:
        """Note that this run tests a part of the contract only.

        Args:
            missing: What cannot be tested, and what to pass to test it.
        """
        self.missing = self.missing or missing

    def draw(self, strategy: st.SearchStrategy[T]) -> T:
        """A value that Hypothesis shrinks when the check fails."""
        self.drew = True
        return self._data.draw(strategy)

    def draw_seed(self) -> int:
        """A seed to reset with; 0 is the simplest."""
        return self.draw(st.integers(0, 9))

    def make(self) -> None:
        """Make the environment."""
        self.run("env = make_env()")

    def start(self, seed: int | None = None) -> None:
        """Make the environment and reset it, with a seed if one is given or can be drawn."""
        self.make()
        self.open(seed)

    def open(self, seed: int | None = None) -> None:
        """Reset, with a seed if one is given or can be drawn."""
        if seed is None and self.subject.capabilities.get("seeding"):
            seed = self.draw_seed()
        self.reset(seed)

    def reset(self, seed: int | None = None, env: str = "env") -> None:
        """Reset an environment, with a seed if one is given."""
        for line in resetting(self.family, seed, env):
            self.run(line)

    def actions(self) -> str:
        """Source for a batch of actions."""
        known = self.subject.actions
        first = self.draw(st.integers(0, len(known) - 1))
        chosen = [first] * self.n
        if self.draw(st.booleans()):
            others = st.lists(st.integers(0, len(known) - 1), min_size=self.n, max_size=self.n)
            chosen = self.draw(others)
        return batch_source(self.family, [known[i] for i in chosen])

    def step(self, actions: str | None = None, env: str = "env") -> None:
        """Step an environment once, with drawn actions unless some are given."""
        self.run(stepping(self.family, self.actions() if actions is None else actions, env))

    def go_on(self, actions: str | None = None) -> None:
        """Step; in DISABLED mode, first reset the rows that ended."""
        if rows := self.awaiting_reset():
            self.reset_rows(rows)
        self.step(actions)

    def awaiting_reset(self) -> list[int]:
        """The rows that the caller must reset before the next step, in DISABLED mode."""
        if self.subject.mode != "Disabled":
            return []
        calls = (
            line
            for line in reversed(self.script.lines)
            if re.search(r"= env\.(step|reset)\(", line)
        )
        return self.ended() if "= env.step(" in next(calls, "") else []

    def reset_rows(self, rows: list[int], env: str = "env", seed: int | None = None) -> None:
        """Reset some rows, by mask."""
        mask = to_source(np.isin(np.arange(self.n), rows))
        self.run(resetting_rows(mask, seed, env))

    def steps(self, most: int = 8) -> Iterator[int]:
        """Step with drawn actions, up to `most` times; yields the number of each step."""
        for number in range(1, self.draw(st.integers(1, most)) + 1):
            self.go_on()
            yield number

    def through_ending(self, after: int = 4) -> Iterator[int]:
        """Start, step until a row ends, and up to `after` steps more; yields after each step.

        Raises:
            NotExercisedError: If no row ends.
        """
        ending = self.ending()
        self.make()
        for line in opening(self.family, ending.setup, ending.seed):
            self.run(line)
        for number in range(1, 3 * ending.steps + 20):
            self.step(ending.actions)
            yield number
            if self.ended():
                break
        else:
            raise NotExercisedError("the episode did not end again")
        for more in range(self.draw(st.integers(0, after))):
            self.go_on(ending.actions)
            yield number + more + 1

    def to_ending(self) -> list[int]:
        """Start and step until a row ends; returns the rows that ended."""
        for _ in self.through_ending(after=0):
            pass
        return self.ended()

    def ending(self) -> Ending:
        """A way to the end of an episode.

        Raises:
            NotExercisedError: If none is known.
        """
        if not self.subject.endings:
            raise NotExercisedError("no episode ended")
        return self.draw(st.sampled_from(self.subject.endings))

    def known_ending(self) -> Ending | None:
        """A way to the end of an episode, or None if none is known."""
        return self.ending() if self.subject.endings else None

    def ended(self) -> list[int]:
        """The rows that ended in the last step."""
        if self.family == "vec_env":
            flags = self.value("dones")
        else:
            flags = np.logical_or(self.value("terminations"), self.value("truncations"))
        return [int(i) for i in np.flatnonzero(np.asarray(flags))]

    def running(self) -> list[int]:
        """The rows that did not end in the last step."""
        ended = self.ended()
        return [i for i in range(self.n) if i not in ended]

    def sample(self) -> str:
        """Source that draws a batch from the environment's own action space."""
        return sample_source(self.subject)
