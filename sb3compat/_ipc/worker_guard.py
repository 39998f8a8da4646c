"""Objects that run our commands in the workers of a `SubprocVecEnv` or `AsyncVectorEnv`.

The loop that SB3 runs in its workers resets an ended sub-environment before anyone has seen the
last observation, and both loops die of the first exception. So `plant` attaches a `Guard` to each
sub-environment, which we call by the library's own command to call a method. It runs one of our
commands, and returns an exception as an ordinary answer. The workers import this module; it imports
neither SB3 nor torch.

Neither loop has a command for all of our questions. The other answers are in the local variables of
the loop, whose frame is below that of this code.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

import gymnasium as gym

from sb3compat._convert.types import SingleEnv
from sb3compat._ipc.exceptions import Packed, mend_queue, packed
from sb3compat._upstream.installed import installed
from sb3compat._upstream.private import missing, private
from sb3compat.errors import UpstreamError

# The attribute of the class of the sub-environment that holds the guard.
NAME = "_sb3compat_guard"

# The loops that we know, by module and function.
_LOOPS = {
    ("gymnasium.vector.async_vector_env", "_async_worker"),
    ("stable_baselines3.common.vec_env.subproc_vec_env", "_worker"),
}
# What runs the loop. Below it, a forked worker has the frames of its parent.
_STARTS = "multiprocessing.process"

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


def plant(run: Run, otherwise: str) -> str:
    """Attach a guard, to the class of the environment, as a reset may replace all that it has.

    Args:
        run: As for `Guard`.
        otherwise: What is returned by a loop that we do not know, which an exception would end.

    Returns:
        The name of an attribute that every environment has, and that can be sent.
    """
    try:
        type.__setattr__(type(env_of_worker()), NAME, Guard(run))
    except UpstreamError:
        return otherwise
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


def env_of_worker() -> SingleEnv:
    """The sub-environment of this worker.

    Raises:
        UpstreamError: If the loop has no local variable `env`.
    """
    env: SingleEnv = local_of_worker("env")
    return env


def local_of_worker(name: str) -> Any:
    """A local variable of this worker's loop.

    The loop of a custom worker is the innermost frame whose `env` is an environment.

    Raises:
        UpstreamError: If there is no such loop, or no such variable.
    """
    for frame in _frames():
        if _function(frame) in _LOOPS or isinstance(frame.f_locals.get("env"), gym.Env):
            if name not in frame.f_locals:
                raise missing_in_worker(name, frame)
            return frame.f_locals[name]
    raise missing_in_worker("env")


def _frames() -> list[FrameType]:
    """The frames of this worker, the innermost first, without those of its parent."""
    frame: FrameType | None = private(sys, "_getframe")(1)
    frames: list[FrameType] = []
    while frame is not None and _function(frame)[0] != _STARTS:
        frames.append(frame)
        frame = frame.f_back
    if frame is None:
        raise UpstreamError(
            f"Expected to be called in a worker process, which {_STARTS} of "
            f"{installed('multiprocessing')} runs, got {len(frames)} frames without it. Run "
            "`sb3compat versions`: it says which versions are supported."
        )
    return frames


def _function(frame: FrameType) -> tuple[str, str]:
    return str(frame.f_globals.get("__name__")), frame.f_code.co_name


def missing_in_worker(name: str, loop: FrameType | None = None) -> UpstreamError:
    """The error for a loop without this local variable."""
    if loop is not None and _function(loop) in _LOOPS:
        return missing(name, sys.modules[_function(loop)[0]])
    return UpstreamError(
        f"Expected a local variable {name!r} in the custom worker of a vector environment, as "
        f"Gymnasium's own has it, but it has none ({installed('gymnasium')}). Rename the variable, "
        "or use Gymnasium's worker."
    )
