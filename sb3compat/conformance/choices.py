"""What a scenario knows of the environment, and draws for the calls that it makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.program.draws import Draws
from sb3compat.conformance.subject.actions import batch
from sb3compat.conformance.subject.subject import Ending, Subject

T = TypeVar("T")


class Choices:
    """Facts about the environment, and draws.

    Args:
        subject: The environment under test.
        draws: What is drawn.

    Attributes:
        subject: The environment under test.
        family: Its interface, `"vec_env"` or `"vector_env"`.
        n: The number of its rows.
    """

    def __init__(self, subject: Subject, draws: Draws) -> None:
        self.subject, self.family, self.n = subject, subject.family, subject.num_envs
        self._draws = draws

    @property
    def rows(self) -> range:
        """The numbers of the rows."""
        return range(self.n)

    @property
    def disabled(self) -> bool:
        """Whether the caller resets the rows that ended: a `VectorEnv` in DISABLED mode."""
        return self.subject.mode == "Disabled"

    def choose(self, values: Sequence[T]) -> T:
        """One of these values. Begin with the simplest: a failure is shrunk towards it."""
        return values[self._draws.number(len(values))]

    def seed(self) -> int:
        """A seed to reset with."""
        return self.choose(range(10))

    def some_rows(self) -> list[int]:
        """The numbers of some rows, at least one."""
        return [i for i in self.rows if self.choose((False, True))] or [self.n - 1]

    def shuffled(self) -> list[int]:
        """The numbers of the rows, in any order."""
        left = list(self.rows)
        return [left.pop(self._draws.number(len(left))) for _ in self.rows]

    def actions(self) -> Any:
        """A batch of actions for `step`."""
        known = self.subject.actions
        chosen = [self.choose(known)] * self.n
        if self.choose((False, True)):
            chosen = [self.choose(known) for _ in self.rows]
        return batch(self.subject, chosen)

    def ending(self) -> Ending:
        """A way to the end of an episode, for `Recorded.to_an_end`.

        Raises:
            NotExercisedError: If none is known. The check is not exercised then.
        """
        if not self.subject.endings:
            raise NotExercisedError("no episode ended")
        return self.choose(self.subject.endings)
