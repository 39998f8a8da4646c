"""Commands to the rows of a `ParallelVecEnv` one by one, for the way to Gymnasium."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import Any

from sb3compat._parallel.messages import Failure
from sb3compat._parallel.source import ParallelRows


class WorkerCommands:
    """Single environments in workers, which take commands one by one.

    Args:
        source: Speaks to the workers.
        num_envs: The number of rows.
        check: Raises if the environment is closed, or a step is under way.
    """

    def __init__(self, source: ParallelRows, num_envs: int, check: Callable[[], object]) -> None:
        self.num_envs = num_envs
        self._source = source
        self._check = check

    @property
    def lost(self) -> bool:
        """Whether a worker is lost."""
        return self._source.broken

    def ask(self, commands: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Give each row its command, then collect the results.

        Raises:
            WorkerError: If a worker has died.
            Exception: What a row has raised; if several have, that of the first row.
        """
        self._check()
        shares: dict[int, dict[int, tuple[Any, ...]]] = {}
        for row, command in commands.items():
            shares.setdefault(self._source.worker_of(row), {})[row] = command
        answers = self._source.command({worker: ("ask", own) for worker, own in shares.items()})
        results: dict[int, Any] = {}
        for row in sorted(commands):
            answer = answers[self._source.worker_of(row)][row]
            if isinstance(answer, Failure):
                answer.reraise()
            results[row] = pickle.loads(answer)
        return {row: results[row] for row in commands}
