"""Gymnasium's vector wrappers: which ones can be adapted, and where to put the others."""

from __future__ import annotations

import gymnasium as gym
from gymnasium.vector import AutoresetMode, VectorObservationWrapper
from gymnasium.wrappers import vector as vector_wrappers

from sb3compat._convert.modes import names_mode
from sb3compat._convert.types import AnyVectorEnv, AnyWrapper, wrappers_of
from sb3compat._to_sb3.bases import base_of
from sb3compat._upstream.installed import gymnasium_release
from sb3compat._upstream.vector_wrappers import believed_mode, converter_class, is_gymnasiums
from sb3compat.errors import UnsupportedEnvError

_VEC_NORMALIZE = "stable_baselines3.common.vec_env.VecNormalize around the adapted environment"


def check_wrappers(env: AnyVectorEnv, mode: AutoresetMode, *, resets_rows: bool) -> None:
    """Refuse vector wrappers with which the stream would not be exact.

    Args:
        env: The environment with its wrappers.
        mode: The mode of the environment itself.
        resets_rows: Whether the adapter will reset ended rows through the wrappers.

    Raises:
        UnsupportedEnvError: For the outermost such wrapper; the message says where it belongs.
    """
    for wrapper in wrappers_of(env):
        _check_conversion(wrapper, env)
        _check_statistics(wrapper, env, mode, resets_rows)
        _check_observations(wrapper, env, mode)
        _check_belief(wrapper, mode)


def _check_conversion(wrapper: AnyWrapper, env: AnyVectorEnv) -> None:
    if isinstance(wrapper, vector_wrappers.DictInfoToList):
        raise UnsupportedEnvError(
            f"Expected infos as a dict of arrays, but {env} contains DictInfoToList, which drops "
            "the masks that separate the infos of the step from the infos of the reset. Remove "
            "that wrapper: to_sb3 makes the list of dicts itself."
        )
    converter = converter_class(wrapper)
    if converter is not None and base_of(env).holds_single_envs:
        raise UnsupportedEnvError(
            f"Expected no {converter.__name__} in {env}: it fails for all infos that are not "
            "numbers, such as the last observations in SAME_STEP mode, and to_sb3 would turn its "
            "arrays back into NumPy's. Remove that wrapper."
        )


def _check_statistics(
    wrapper: AnyWrapper, env: AnyVectorEnv, mode: AutoresetMode, resets_rows: bool
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
    if not same_step or gymnasium_release() >= (1, 4):
        return
    # Both assume NEXT_STEP mode, and leave out the first step of every episode but the first.
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


def _check_observations(wrapper: AnyWrapper, env: AnyVectorEnv, mode: AutoresetMode) -> None:
    """Refuse observation wrappers that do not transform `final_obs`.

    Gymnasium refuses them too if the metadata say SAME_STEP; but the metadata may be missing, or
    say something else.
    """
    if mode != AutoresetMode.SAME_STEP or not isinstance(wrapper, VectorObservationWrapper):
        return
    if is_gymnasiums(type(wrapper).step):
        name = type(wrapper).__name__
        raise UnsupportedEnvError(
            f"Expected no {name} in {env}, which is in SAME_STEP mode: the last observation of an "
            "episode, in infos['final_obs'], would not be transformed. Put gymnasium.wrappers."
            f"{name.removeprefix('Vectorize')} around each sub-environment, or build the "
            "environment with autoreset_mode=AutoresetMode.NEXT_STEP."
        )


def _check_belief(wrapper: AnyWrapper, mode: AutoresetMode) -> None:
    """Refuse wrappers that assume another autoreset mode than the environment's.

    A wrapper reads the mode from the metadata when it is made. Up to Gymnasium 1.3, all
    environments of a class share one metadata dict, and each new environment writes its own mode.
    """
    name, believed = believed_mode(wrapper)
    same_step = AutoresetMode.SAME_STEP
    if believed is not None and names_mode(believed, same_step) != (mode == same_step):
        raise UnsupportedEnvError(
            f"Expected {type(wrapper).__name__} to know that {wrapper.env} is in {mode.name} "
            f"mode, got {name}={believed}, which it read from the metadata when it was made. "
            "Make the wrapper directly after the environment, and let the environment declare "
            "its mode in metadata['autoreset_mode']."
        )
