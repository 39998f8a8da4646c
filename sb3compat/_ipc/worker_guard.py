"""Objects that run our commands in the workers of a `SubprocVecEnv` or `AsyncVectorEnv`.

The loop that SB3 runs in its workers resets an ended sub-environment before anyone has seen the
last observation, and both loops die of the first exception. So `plant` attaches a `Guard` to each
sub-environment, which we call by the library's own command to call a method. It runs one of our
commands, and returns an exception as an ordinary answer. The workers import this module; it imports
neither SB3 nor torch.
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


class Inside:
    """An object that a worker unpickles as the name of an attribute, which a function there gives.

    The workers have commands for attributes and methods of their environments only. Unpickling runs
    inside the worker, below whose frame the function finds what it asks for or changes.

    Args:
        function: Gives the name. The worker imports its module.
        args: Its arguments.
    """

    def __init__(self, function: Callable[..., str], *args: Any) -> None:
        self._function, self._args = function, args

    def __reduce__(self) -> tuple[Any, ...]:
        return self._function, self._args


def plant(run: Run) -> str:
    """Attach a guard; the name of an attribute that every environment has, and that can be sent.

    The library's own command to set an attribute would end the worker of an environment whose
    `__setattr__` refuses names that it does not know.
    """
    object.__setattr__(env_of_worker(), NAME, Guard(run))
    return "render_mode"


def mend_queue_of_worker() -> str:
    """Let this worker send exceptions that cannot be pickled as a whole."""
    mend_queue(local_of_worker("error_queue"))
    return "unwrapped"


def autoreset_pending() -> str:
    """The name of an attribute that the environment has where one is pending, and else has not."""
    return "unwrapped" if local_of_worker("autoreset") else "_sb3compat_no"


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
