"""The exchanges of messages between a parent and its workers, one of which may be the parent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sb3compat._ipc.pipes import Exchange
from sb3compat._ipc.ready import Line, Spin
from sb3compat._parallel.messages import Failure
from sb3compat._parallel.serve import STEP
from sb3compat._parallel.worker import Worker


class WorkerExchange(Exchange):
    """Messages to all workers; one object for their whole life, which keeps outstanding answers.

    Args:
        lines: The workers.
        restarts: Whether the death of a worker is no failure, as it is replaced.
        spin: Looks for answers before sleeping until they come.
    """

    def __init__(
        self, lines: Mapping[int, Line], *, restarts: bool, spin: Spin | None = None
    ) -> None:
        super().__init__(lines, spin)
        self._restarts = restarts

    @property
    def failed(self) -> bool:
        """Whether the call will raise an exception, whatever the other workers answer."""
        if self.unread or (self.dead and not self._restarts):
            return True
        return Failure in map(type, self.answers.values())


class ParentExchange(WorkerExchange):
    """Messages to worker processes, and to one worker that is this process.

    The parent runs its own command when it asks for the answers, while the processes run theirs.

    Args:
        lines: The worker processes.
        number: The number of the worker that is this process.
        worker: That one.
        options: Those of `WorkerExchange`.
    """

    def __init__(
        self, lines: Mapping[int, Line], *, number: int, worker: Worker, **options: Any
    ) -> None:
        super().__init__(lines, **options)
        self._number, self._worker = number, worker
        self._command: bytes | None = None

    def send(self, messages: Mapping[int, bytes], timeout: float | None = None) -> None:
        """Send each worker its message."""
        self._command = messages.get(self._number)
        others = {row: body for row, body in messages.items() if row != self._number}
        super().send(others, timeout)

    def send_same(self, rows: Iterable[int], body: bytes) -> None:
        """Send workers the same short message."""
        numbers = list(rows)
        self._command = body if self._number in numbers else None
        super().send_same([row for row in numbers if row != self._number], body)

    def receive(self, timeout: float | None = None, watch: Any = None) -> None:
        """Run the command of the worker that is this process, and take the answers of the others.

        Args:
            timeout: How many seconds the others may take, from then on.
            watch: As for `WorkerExchange`.
        """
        command, self._command = self._command, None
        if command is not None:
            step = command == STEP
            answer = self._worker.step() if step else self._worker.run(command)[1]
            self._load(self._number, answer)
        super().receive(timeout, watch)
