"""Reading the local variables of the loop that runs in a worker process.

Neither Gymnasium's worker nor SB3's has a command for everything that we ask. What is asked for
lies in the local variables of the loop, which is a frame below the code that asks.
"""

from __future__ import annotations

import sys
from types import FrameType

import gymnasium as gym

from sb3compat._convert.types import SingleEnv, Value
from sb3compat._upstream.private import installed
from sb3compat.errors import UpstreamError

# The loops, by module and function: for messages.
_LOOPS = {
    "_async_worker": "gymnasium",
    "_worker": "stable_baselines3",
}


def loop_of_worker() -> FrameType:
    """The innermost frame with a local variable `env` that is a Gymnasium environment.

    Raises:
        UpstreamError: If there is none: the worker is not one that we know.
    """
    frame: FrameType | None = sys._getframe(1)
    loops = []
    while frame is not None:
        if isinstance(frame.f_locals.get("env"), gym.Env):
            return frame
        if frame.f_code.co_name in _LOOPS:
            loops.append(frame.f_code.co_name)
        frame = frame.f_back
    library = installed(_LOOPS[loops[0]]) if loops else "a custom worker"
    raise UpstreamError(
        f"Expected a local variable `env` with the sub-environment in the worker of {library}, but "
        "it has none. Run `sb3compat versions`: it says which versions are supported."
    )


def env_of_worker() -> SingleEnv:
    """The sub-environment of this worker."""
    env: SingleEnv = loop_of_worker().f_locals["env"]
    return env


def local_of_worker(name: str) -> Value:
    """A local variable of this worker's loop.

    Raises:
        UpstreamError: If there is no such variable.
    """
    loop = loop_of_worker()
    if name not in loop.f_locals:
        function = loop.f_code.co_name
        library = installed(_LOOPS[function]) if function in _LOOPS else "a custom worker"
        raise UpstreamError(
            f"Expected a local variable `{name}` in {function} of {library}, but it has none. A "
            "custom worker needs it as Gymnasium's has it; otherwise run `sb3compat versions`."
        )
    return loop.f_locals[name]
