"""The protocol `Workers`: where rows live, and how their parent speaks to them.

What the rows do is in `worker.py`, and what their parent makes of it in `source.py`; a backend
only carries commands and arrays to and fro.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from sb3compat._convert.types import Array, Value
from sb3compat._parallel.memory import Buffers, Shapes
from sb3compat._parallel.messages import Described, Failure
from sb3compat.errors import WorkerError


class Workers(Protocol):
    """Some workers, by number; each holds the rows of a few consecutive functions.

    An answer is what a command of `Worker` returns, or a `Failure`. A worker owes an answer to
    each command, and gets no other before; answers that an interrupt has left behind are taken, and
    dropped, by the next `send`.

    Attributes:
        noun: What a worker is, for messages.
        lost: The workers that have died, with what is known of it.
        buffers: The arrays of all rows, as the last step or reset has left them.
    """

    noun: str
    lost: dict[int, str]
    buffers: Buffers

    def start(self) -> dict[int, Described]:
        """Start the workers, and have them make their parts.

        Raises:
            WorkerError: If a worker has died.
            Exception: What a function has raised.
        """

    def attach(self, shapes: Shapes, rows: Sequence[slice]) -> None:
        """Provide the arrays, and tell each worker which rows of them are its own."""

    def restart(self, worker: int) -> None:
        """Replace a lost worker by a new one with the same functions.

        Raises:
            WorkerError: If that one dies, too.
        """

    def send(self, commands: Mapping[int, Sequence[Any]]) -> None:
        """Send workers a command each; a worker that turns out to be dead becomes `lost`."""

    def send_step(self, actions: list[Array]) -> None:
        """Have all workers step their rows with these actions."""

    def collect(self) -> dict[int, Value]:
        """The answers that are owed, by worker; without those of workers that are `lost`.

        Raises:
            WorkerTimeoutError: If they do not come in time.
        """

    def observations(self, *, copy: bool) -> list[Array]:
        """The observations of all rows; with `copy`, in arrays that nothing else uses."""

    def close(self, *, patient: bool = True) -> None:
        """Have the workers close their parts, and end them.

        Args:
            patient: Whether workers that are busy get some time for it.
        """


class Owner:
    """The process that has started the workers; a fork of it must not use or end them."""

    def __init__(self) -> None:
        self._owner = os.getpid()

    @property
    def owns(self) -> bool:
        """Whether this is that process."""
        return os.getpid() == self._owner

    def check_owner(self) -> None:
        """Refuse to speak to the workers of another process.

        Raises:
            WorkerError: If this process is a fork of the one that has started them.
        """
        if not self.owns:
            raise WorkerError(
                f"Expected the process {self._owner}, which has started the workers, to use them, "
                f"got a call from {os.getpid()}, a fork of it. Build a new environment there."
            )


def check_made(
    workers: Workers, made: Iterable[int], answers: Mapping[int, Value], firsts: Sequence[int]
) -> None:
    """Raise what the first of some workers has met while it made its parts.

    Args:
        workers: The workers.
        made: Which of them have made their parts.
        answers: What they have answered.
        firsts: The number of the first function of each worker, and of all functions.

    Raises:
        WorkerError: If a worker has died.
        Exception: What a function has raised.
    """
    failures = (answers.get(worker) for worker in sorted(made))
    for answer in failures:
        if isinstance(answer, Failure):
            answer.reraise()
    for worker in sorted(made):
        if worker not in answers:
            first, last = firsts[worker], firsts[worker + 1] - 1
            raise WorkerError(
                f"The {workers.noun} of env_fns[{first}] to env_fns[{last}] has died while it made "
                f"them ({workers.lost[worker]}); its own output may say why."
            )
