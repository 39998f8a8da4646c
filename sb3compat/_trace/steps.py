"""Step an environment up to the ends of its episodes, and fill a record of the kit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, NoReturn

import numpy as np
from gymnasium.vector import AutoresetMode

from sb3compat._convert.types import Action
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.programs import affordable, due_rows, opening
from sb3compat.conformance.record import Op, Record
from sb3compat.conformance.recording import recorded
from sb3compat.conformance.subject.actions import batch
from sb3compat.conformance.subject.subject import Subject

# Some clauses need so many ends of a row, and resets of all rows in the middle of episodes.
_ENDS, _RESETS = 4, 16


class Stepping:
    """Steps an environment.

    Every row has its own sequence of actions, and takes its k-th action in its k-th transition. So
    each API returns the same transitions, even if some need additional steps for resets.

    Args:
        env: A `VecEnv`, or an object with its methods; or a `VectorEnv`.
        mode: The autoreset mode of a `VectorEnv`; None for a `VecEnv`.
        rows: The rows whose episodes matter.
        seed: The seed of the environment and of the actions.
        max_steps: After how many steps to stop.

    Attributes:
        record: The calls so far.
    """

    def __init__(
        self, env: Any, mode: AutoresetMode | None, rows: Sequence[int], seed: int, max_steps: int
    ) -> None:
        space = env.action_space if mode is None else env.single_action_space
        self.record = Record(
            Subject(
                lambda: env,
                "vec_env" if mode is None else "vector_env",
                env.num_envs,
                None if mode is None else mode.value,
                {},
                action_space=space,
            )
        )
        self.record.lead = _no_other
        self._env, self._rows, self._seed, self._left = env, rows, seed, max_steps
        self._spaces = [deepcopy(space) for _ in self.record.rows]
        for i, space in enumerate(self._spaces):
            space.seed(seed + i)
        self._actions: list[Action] = [space.sample() for space in self._spaces]
        # The rows that the next step resets, in NEXT_STEP mode.
        self._waiting: set[int] = set()
        # For each end of an episode of a row the number of steps since then.
        self._ends: list[list[int]] = [[] for _ in self._spaces]

    def to_ends(self, episodes: int) -> None:
        """Step up to the ends of so many episodes in each row, and to the starts that follow.

        Raises:
            Exception: What the environment raises.
        """
        recorded(self.record, self._env, self._opened(episodes))
        if self.record.error is not None:
            raise self.record.error

    def beyond(self) -> None:
        """Go on for clauses that need several ends; an exception ends the record.

        The record keeps all results, so that large observations allow fewer steps.
        """
        self._left = min(self._left, affordable(self.record.subject, self.record))
        recorded(self.record, self._env, self._more())

    def _opened(self, episodes: int) -> Iterator[Op]:
        seeds = self.record.family == "vector_env" or callable(getattr(self._env, "seed", None))
        yield from opening(self.record.subject, self._seed if seeds else None)
        yield from self._steps(episodes)

    def _more(self) -> Iterator[Op]:
        yield from self._steps(_ENDS)
        for _ in range(_RESETS):
            yield from opening(self.record.subject, None)
            self._waiting = set()
            yield from self._step()

    def _steps(self, episodes: int) -> Iterator[Op]:
        after = 2 if self.record.mode == "NextStep" else 1
        while self._left and not all(
            len(self._ends[i]) >= episodes and self._ends[i][episodes - 1] >= after
            for i in self._rows
        ):
            self._left -= 1
            yield from self._step()

    def _step(self) -> Iterator[Op]:
        """A step; in DISABLED mode, a reset of the rows that ended follows, as a user has to."""
        yield Op("step", (batch(self.record.subject, self._actions),))
        over = set(self.record.calls[-1].ended) - self._waiting
        for i in self.record.rows:
            if i not in self._waiting:
                self._actions[i] = self._spaces[i].sample()
            self._ends[i] = [steps + 1 for steps in self._ends[i]] + [0] * (i in over)
        self._waiting = over if self.record.mode == "NextStep" else set()
        if rows := due_rows(self.record):
            mask = np.isin(self.record.rows, rows)
            yield Op("reset", kwargs={"options": {"reset_mask": mask}})


def _no_other(*_: Any) -> NoReturn:
    raise NotExercisedError("there is one environment")
