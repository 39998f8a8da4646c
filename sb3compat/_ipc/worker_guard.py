"""Objects that run our commands in the workers of a `SubprocVecEnv` or `AsyncVectorEnv`.

The loop that SB3 runs in its workers resets an ended sub-environment before anyone has seen the
last observation, and both loops die of the first exception. So a `Planting` attaches a `Guard` to
each sub-environment, which we call by the library's own command to call a method. It runs one of
our commands, and returns an exception as an ordinary answer. A `Question` reads the state of
Gymnasium's loop itself. The workers import this module; it imports neither SB3 nor torch.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import Any

from sb3compat._ipc.exceptions import Packed, mend_queue, packed
from sb3compat._ipc.worker_locals import env_of_worker, local_of_worker

# The attribute of the sub-environment that holds the guard.
NAME = "_sb3compat_guard"

# Runs a command, given by its name and arguments, on a sub-environment.
Run = Callable[..., Any]


class Guard:
    """Runs commands on the sub-environment of the worker that calls it.

    Args:
        run: Runs one, given the sub-environment, the name of the command and its arguments. It is
            pickled by reference: the worker imports its module.
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    def __call__(self, command: str, *args: Any) -> bytes | Packed:
        """The answer: the result, pickled, or what was raised."""
        try:
            # Pickled here: what cannot be sent must not end the worker either.
            result = self._run(env_of_worker(), command, *args)
            return pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
        except BaseException as error:
            return packed(error)


class Planting:
    """An object that a worker unpickles as the name of an attribute, once it has planted a guard.

    The library's own command to set an attribute would end the worker of an environment whose
    `__setattr__` refuses names that it does not know.

    Args:
        run: As of the guard.
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    def __reduce__(self) -> tuple[Any, ...]:
        return _planted, (self._run,)


def _planted(run: Run) -> str:
    """The name of an attribute that every environment has, and that can be sent."""
    object.__setattr__(env_of_worker(), NAME, Guard(run))
    return "render_mode"


def results_of(answers: Mapping[int, Any]) -> dict[int, Any]:
    """The results in the answers of the guards, by row; called in the parent.

    Raises:
        Exception: The exception of the first of these rows that raised one, with the worker's
            traceback as its cause.
    """
    for row, answer in answers.items():
        if isinstance(answer, Packed):
            answer.reraise(f"row {row}")
    return {row: pickle.loads(answer) for row, answer in answers.items()}


class Question:
    """An object that a worker unpickles as the name of an attribute, which is the answer.

    Gymnasium's worker has no command for these questions, and its `_call` reaches methods of the
    environment only. Unpickling runs inside the worker, whose frame has the answer.
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
