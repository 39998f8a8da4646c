"""Questions to the workers of an `AsyncVectorEnv` for which Gymnasium has no command."""

from __future__ import annotations

from typing import Any

from sb3compat._ipc.exceptions import mend_queue
from sb3compat._ipc.worker_locals import local_of_worker


class Question:
    """Becomes, when a worker unpickles it, the name of an attribute that is the answer.

    Gymnasium's worker has no command for these questions, and its `_call` reaches methods of the
    environment only. Unpickling runs inside the worker, whose frame holds what is asked for.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __reduce__(self) -> tuple[Any, ...]:
        return _answer, (self.kind,)


def _answer(kind: str) -> str:
    """The name of an attribute that the sub-environment has for yes, and has not for no."""
    if kind == "errors":
        mend_queue(local_of_worker("error_queue"))
        return "unwrapped"
    return "unwrapped" if local_of_worker("autoreset") else "_sb3compat_no"
