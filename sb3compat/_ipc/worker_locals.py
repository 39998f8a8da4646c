"""Reading the local variables of the loop that runs in a worker process.

Neither Gymnasium's worker nor SB3's has a command for all of our questions. The answers are in the
local variables of the loop, whose frame is below that of this code.
"""

from __future__ import annotations

import sys
from threading import Thread
from types import FrameType
from typing import Any

import gymnasium as gym

from sb3compat._convert.types import SingleEnv
from sb3compat._upstream.installed import installed
from sb3compat._upstream.private import missing, private
from sb3compat.errors import UpstreamError

# The loops that we know, by module and function.
_LOOPS = {
    ("gymnasium.vector.async_vector_env", "_async_worker"),
    ("stable_baselines3.common.vec_env.subproc_vec_env", "_worker"),
}
# What runs the loop. Below it, a forked worker has the frames of its parent.
_STARTS = "multiprocessing.process"


def frame_of_thread(thread: Thread) -> FrameType | None:
    """The innermost frame of another thread of this process."""
    frames: dict[int | None, FrameType] = private(sys, "_current_frames")()
    return frames.get(thread.ident)


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
                raise _missing(name, frame)
            return frame.f_locals[name]
    raise _missing("env", None)


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


def _missing(name: str, loop: FrameType | None) -> UpstreamError:
    if loop is not None and _function(loop) in _LOOPS:
        return missing(name, sys.modules[_function(loop)[0]])
    return UpstreamError(
        f"Expected a local variable {name!r} in the custom worker of a vector environment, as "
        f"Gymnasium's own has it, but it has none ({installed('gymnasium')}). Rename the variable, "
        "or use Gymnasium's worker."
    )
