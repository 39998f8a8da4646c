"""Failures of Gymnasium's vector environments while they are made, with what to do."""

from __future__ import annotations

import inspect
import pickle
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gymnasium.vector.utils import batch_differing_spaces

from sb3compat._convert.types import AnyVectorEnv, SingleEnv
from sb3compat._upstream.sb3 import VecEnv
from sb3compat.errors import UnsupportedEnvError, UnsupportedSpaceError, WorkerError

# Makes a vector environment of the functions that make its sub-environments.
Vectorizer = Callable[..., VecEnv | AnyVectorEnv]


def made_of(
    make: Vectorizer, functions: Sequence[Callable[[], SingleEnv]], mode: str
) -> VecEnv | AnyVectorEnv:
    """Make a vector environment, and say what to do where Gymnasium's error does not.

    Raises:
        WorkerError: If a worker has ended while it started.
        UnsupportedEnvError: If the functions cannot be sent to workers.
        UnsupportedSpaceError: If Gymnasium refuses sub-environments with different spaces.
    """
    try:
        return make(functions)
    except Exception as error:
        if mode == "async" and isinstance(error, EOFError | ConnectionError):
            raise WorkerError(
                "Expected the workers of AsyncVectorEnv to start, but one has ended; its own "
                "output says why. With the start methods 'spawn' and 'forkserver', put the "
                "statements of your script that start workers below 'if __name__ == \"__main__\":'."
            ) from error
        if mode == "async" and _is_about_pickling(error):
            raise UnsupportedEnvError(
                "Expected functions and arguments that can be sent to the workers of "
                f"AsyncVectorEnv, got: {type(error).__name__}: {error}. Make what cannot be "
                "pickled inside of the function; or, where nothing has to be sent, pass "
                "vec_env_kwargs={'start_method': 'fork'}."
            ) from error
        if mode not in ("sync", "async") or not _is_about_spaces(error):
            raise
        if "have a registered" in str(error):
            raise UnsupportedSpaceError(
                "Expected observation spaces of Gymnasium's own classes, which it can batch even "
                "where the sub-environments have different bounds, got a subclass or a class of "
                "your own. If all sub-environments have equal spaces, pass "
                "vec_env_kwargs={'observation_mode': 'same'}."
            ) from error
        raise UnsupportedSpaceError(
            "Expected sub-environments with spaces that Gymnasium's "
            f"{'Sync' if mode == 'sync' else 'Async'}VectorEnv considers equal, got: {error} "
            "Give them equal spaces; or pass vectorization_mode='parallel', which uses the spaces "
            "of the first one, as Stable-Baselines3 does, even if the others have different bounds."
        ) from error


def _is_about_pickling(error: Exception) -> bool:
    """Whether this is an error of pickling, which Python raises with several classes."""
    return isinstance(error, pickle.PicklingError) or (
        isinstance(error, TypeError | AttributeError) and "pickle" in str(error)
    )


def _is_about_spaces(error: Exception) -> bool:
    """Whether Gymnasium has compared the spaces of sub-environments, and refused them."""
    frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    # Gymnasium raised AssertionError there before 1.4, and RuntimeError since.
    if isinstance(error, RuntimeError | AssertionError) and "space" in str(error):
        return "gymnasium/vector/" in Path(frames[-1].co_filename).as_posix()
    # What batches different spaces raises errors of many classes.
    batching: Any = inspect.unwrap(batch_differing_spaces)
    return any(
        frame is batching.__code__ or frame.co_name.endswith("dtype_shape_equiv")
        for frame in frames
    )
