"""Gymnasium's vector wrappers: which can stand between, and where the others belong instead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import (
    AsyncVectorEnv,
    AutoresetMode,
    SyncVectorEnv,
    VectorEnv,
    VectorObservationWrapper,
)
from gymnasium.wrappers import vector as vector_wrappers

from sb3compat._to_sb3.tap import BaseTap, wrappers_of
from sb3compat.errors import UnsupportedEnvError

AnyVectorEnv = VectorEnv[Any, Any, Any]

_GYMNASIUM = tuple(int(part) for part in gym.__version__.split(".")[:2])

_VEC_NORMALIZE = "stable_baselines3.common.vec_env.VecNormalize around the adapted environment"

# Imported by Gymnasium on first use only, as they need torch, JAX or array-api-compat.
_CONVERTERS = {"ArrayConversion", "JaxToNumpy", "JaxToTorch", "NumpyToTorch"}


def check_wrappers(env: AnyVectorEnv, mode: AutoresetMode, *, resets_rows: bool) -> None:
    """Refuse vector wrappers with which the stream would not be exact.

    Args:
        env: The environment with its wrappers.
        mode: The mode that it is really in.
        resets_rows: Whether rows that ended are going to be reset through the wrappers.

    Raises:
        UnsupportedEnvError: For the outermost such wrapper, saying where it belongs instead.
    """
    for wrapper in wrappers_of(env):
        _check_conversion(wrapper, env)
        _check_statistics(wrapper, env, mode, resets_rows)
        _check_observations(wrapper, env, mode)
        _check_belief(wrapper, mode)


@contextmanager
def paused_videos(env: AnyVectorEnv, mask: npt.NDArray[np.bool_]) -> Iterator[None]:
    """Record no frame while rows are reset, unless the first is among them, which videos follow.

    That row's frame would otherwise be in the video twice.
    """
    recorder = getattr(vector_wrappers, "RecordVideo", ())  # since Gymnasium 1.2
    videos: list[Any] = [w for w in wrappers_of(env) if isinstance(w, recorder)]
    paused = [] if mask[0] else [video for video in videos if video.recording]
    for video in paused:
        video.recording = False
    try:
        yield
    finally:
        for video in paused:
            video.recording = True


def _check_conversion(wrapper: Any, env: AnyVectorEnv) -> None:
    if isinstance(wrapper, vector_wrappers.DictInfoToList):
        raise UnsupportedEnvError(
            f"Expected infos as a dict of arrays, but {env} contains DictInfoToList, which loses "
            "which key belongs to which step. Remove that wrapper: to_sb3 makes the list of dicts "
            "itself."
        )
    classes = [cls for cls in type(wrapper).__mro__ if cls.__name__ in _CONVERTERS]
    ours = any(cls.__module__.startswith("gymnasium.wrappers.vector.") for cls in classes)
    if ours and isinstance(env.unwrapped, SyncVectorEnv | AsyncVectorEnv):
        raise UnsupportedEnvError(
            f"Expected no {classes[0].__name__} in {env}: it fails for all infos that are not "
            "numbers, such as the last observations in SAME_STEP mode, and to_sb3 would turn its "
            "arrays back into NumPy's. Remove that wrapper."
        )


def _check_statistics(
    wrapper: Any, env: AnyVectorEnv, mode: AutoresetMode, resets_rows: bool
) -> None:
    """Refuse running statistics that are wrong in this mode, or with rows reset one by one."""
    same_step = mode == AutoresetMode.SAME_STEP
    if isinstance(wrapper, vector_wrappers.NormalizeObservation) and (resets_rows or same_step):
        raise UnsupportedEnvError(
            f"Expected no NormalizeObservation in {env}: it cannot reset single rows, and has no "
            f"SAME_STEP mode. Remove it, and put {_VEC_NORMALIZE}."
        )
    if isinstance(wrapper, vector_wrappers.NormalizeReward) and resets_rows:
        raise UnsupportedEnvError(
            f"Expected no NormalizeReward in {env}, unless in SAME_STEP mode: when one row is "
            f"reset, it forgets the discounted returns of all. Remove it and put {_VEC_NORMALIZE}, "
            "or build the environment with autoreset_mode=AutoresetMode.SAME_STEP."
        )
    if not same_step or _GYMNASIUM >= (1, 4):
        return
    # Both take each environment for one in NEXT_STEP mode, and leave out the first step of every
    # episode but the first.
    for cls, instead in (
        (
            vector_wrappers.RecordEpisodeStatistics,
            "gymnasium.wrappers.RecordEpisodeStatistics around each sub-environment, or "
            "stable_baselines3.common.vec_env.VecMonitor around the adapted environment",
        ),
        (vector_wrappers.NormalizeReward, _VEC_NORMALIZE),
    ):
        if isinstance(wrapper, cls):
            raise UnsupportedEnvError(
                f"Expected Gymnasium 1.4 or newer for the vector wrapper {cls.__name__} in "
                f"SAME_STEP mode, got Gymnasium {gym.__version__}, whose statistics are wrong "
                f"there. Remove it from {env}, and put {instead}."
            )


def _check_observations(wrapper: Any, env: AnyVectorEnv, mode: AutoresetMode) -> None:
    """Refuse observation wrappers that would leave `final_obs` as it was.

    Gymnasium refuses them in SAME_STEP mode too, where it knows of that mode: it goes by the
    metadata, which may say something else, or nothing.
    """
    if mode != AutoresetMode.SAME_STEP or not isinstance(wrapper, VectorObservationWrapper):
        return
    if type(wrapper).step.__module__.startswith("gymnasium."):
        name = type(wrapper).__name__
        raise UnsupportedEnvError(
            f"Expected no {name} in {env}, which is in SAME_STEP mode: the last observation of an "
            "episode, in infos['final_obs'], would not be transformed. Put gymnasium.wrappers."
            f"{name.removeprefix('Vectorize')} around each sub-environment, or build the "
            "environment with autoreset_mode=AutoresetMode.NEXT_STEP."
        )


def _check_belief(wrapper: Any, mode: AutoresetMode) -> None:
    """Refuse wrappers that took the environment for one in another mode.

    They look at the metadata when they are made, which up to Gymnasium 1.3 are one dict for all
    environments of a class: one made in between changes what the first one declares.
    """
    if isinstance(wrapper, BaseTap):
        return
    for name in ("autoreset_mode", "_autoreset_mode"):
        believed = vars(wrapper).get(name)
        same_step = (AutoresetMode.SAME_STEP, AutoresetMode.SAME_STEP.value)
        if believed is not None and (believed in same_step) != (mode in same_step):
            raise UnsupportedEnvError(
                f"Expected {type(wrapper).__name__} to know that {wrapper.env} is in {mode.name} "
                f"mode, got {name}={believed}, which it read from the metadata when it was made. "
                "Put the wrapper around the environment directly after that is made, and let the "
                "environment declare its mode in metadata['autoreset_mode']."
            )
