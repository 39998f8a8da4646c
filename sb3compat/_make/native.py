"""Natively vectorized environments for `make_vec_env`: Gymnasium's `vector_entry_point`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.envs import registration
from gymnasium.envs.registration import EnvSpec

from sb3compat._convert.types import AnyVectorEnv, Kwargs
from sb3compat._make.monitor import SUFFIX
from sb3compat._to_sb3.adapter import to_sb3
from sb3compat._upstream.private import private
from sb3compat._upstream.sb3 import HAS_SB3, VecEnv, of_sb3
from sb3compat.errors import install_line, shown

# Gymnasium's name of this vectorization mode.
NATIVE = "vector_entry_point"


def find_spec(env_id: object) -> EnvSpec | None:
    """The spec that `gymnasium.make` would take, or None if there is none.

    Args:
        env_id: A spec, or an id as `gymnasium.make` takes it: `module:` before it imports that
            module, and without a version the highest one is meant.
    """
    if not isinstance(env_id, str):
        return env_id if isinstance(env_id, EnvSpec) else None
    # `gymnasium.make` says the same when the environment is made.
    with suppress(gym.error.Error, ImportError), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*(Using the latest versioned|is out of date)")
        spec: EnvSpec = private(registration, "_find_spec")(env_id)
        return spec
    return None


def is_native_only(env_id: object) -> bool:
    """Whether there is no single environment of that id, so that SB3 could not make one."""
    spec = find_spec(env_id)
    return spec is not None and spec.entry_point is None and spec.vector_entry_point is not None


def why_not_native(env_id: object, env_kwargs: Kwargs, autoreset_mode: Any) -> str | None:
    """Why the native environment cannot replace single ones; None if no reason is known.

    Only the spaces are compared. The native environment may still behave differently.
    """
    spec = find_spec(env_id)
    if spec is None or spec.vector_entry_point is None:
        return "there is no native environment of that id"
    if spec.entry_point is None:
        return None  # there is nothing else
    try:
        native = make_native(spec, 1, env_kwargs)
    except Exception as error:  # whatever the environment makes of arguments that it does not know
        return f"the native environment cannot be made: {error}"
    with closing(native), closing(gym.make(spec, **env_kwargs)) as single:
        if (native.single_observation_space, native.single_action_space) != (
            single.observation_space,
            single.action_space,
        ):
            return "the native environment has other spaces than the single one"
        try:
            # Ale-py scales and stacks its images, for example; JAX environments declare no mode.
            to_sb3(native, autoreset_mode=autoreset_mode)
        except ValueError as error:
            return str(error)
    return None


def make_native(env_id: object, n_envs: int, env_kwargs: Kwargs) -> AnyVectorEnv:
    """What `gymnasium.make_vec` makes of a `vector_entry_point`.

    Args:
        env_id: An id or a spec; anything else is refused.
        n_envs: The number of rows.
        env_kwargs: As for `gymnasium.make`. Its own arguments are translated:
            `max_episode_steps=None` is the registered limit there, and `disable_env_checker`
            is about a wrapper that only single environments have.

    Raises:
        ValueError: If the environment cannot do what `max_episode_steps` asks for, or `env_id` is
            a function.
    """
    if not isinstance(env_id, str | EnvSpec):
        raise ValueError(
            "Expected the id of a registered environment for vectorization_mode="
            f"'native', got env_id={shown(env_id)}. Adapt a vector environment with to_sb3."
        )
    spec = find_spec(env_id)
    if spec is not None and spec.vector_entry_point is None:
        raise gym.error.Error(
            "Expected an environment that is vectorized natively for vectorization_mode='native', "
            f"got env_id={spec.id!r}, which is registered without a vector_entry_point. Use "
            "vectorization_mode='sync', or 'parallel' for all cores."
        )
    kwargs = {key: value for key, value in env_kwargs.items() if key != "disable_env_checker"}
    limit = kwargs.get("max_episode_steps")
    if limit is None:
        kwargs.pop("max_episode_steps", None)
    elif limit < 0:
        raise ValueError(
            "Expected max_episode_steps to be positive or None for a natively vectorized "
            f"environment, got max_episode_steps={limit!r}, which means 'no limit' in "
            "gymnasium.make. Native environments have no such value: use "
            "vectorization_mode='sync'."
        )

    def make(**kwargs: Any) -> AnyVectorEnv:
        return gym.make_vec(env_id, n_envs, vectorization_mode=NATIVE, **kwargs)

    try:
        return make(**{"render_mode": "rgb_array", **kwargs})
    except TypeError:  # an environment that takes no render_mode
        return make(**kwargs)


def monitored(
    adapt: Callable[[AnyVectorEnv], VecEnv],
    monitor_dir: str | None,
    start_index: int,
    monitor_kwargs: Kwargs,
    source: AnyVectorEnv,
) -> VecEnv:
    """Adapt a native environment, its episodes recorded around all rows at once.

    Raises:
        ValueError: If monitor files are asked for, and SB3 is not there to write them.
    """
    if not HAS_SB3:
        if monitor_dir is not None:
            raise ValueError(
                "Expected monitor_dir=None: the monitor files of natively vectorized environments "
                f"are written by SB3's VecMonitor, and SB3 is not installed: {install_line('sb3')}"
            )
        return adapt(gym.wrappers.vector.RecordEpisodeStatistics(source))
    filename = None
    if monitor_dir is not None:
        Path(monitor_dir).mkdir(parents=True, exist_ok=True)
        filename = str(Path(monitor_dir) / f"{start_index}.{SUFFIX}")
    keywords = tuple(monitor_kwargs.get("info_keywords", ()))
    env: VecEnv = of_sb3("vec_env", "VecMonitor")(adapt(source), filename, keywords)
    return env
