"""`make_vec_env`: the one-liner that SB3's users know, over Gymnasium's vector environments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from sb3compat._convert.types import AnyVectorEnv, Kwargs, SingleEnv, Value
from sb3compat._to_sb3.adapter import to_sb3
from sb3compat._to_sb3.monitor import SUFFIX, EpisodeMonitor, MonitoredEnv
from sb3compat._upstream.sb3 import HAS_SB3, VecEnv, monitor_class, vec_monitor_class

# What `env_id` may be.
EnvId = str | EnvSpec | Callable[..., SingleEnv]

_MODES = ("sync", "async", "vector_entry_point")


def make_vec_env(
    env_id: EnvId,
    n_envs: int = 1,
    seed: int | None = None,
    start_index: int = 0,
    monitor_dir: str | None = None,
    wrapper_class: Callable[..., SingleEnv] | None = None,
    env_kwargs: Kwargs | None = None,
    vec_env_cls: type | None = None,
    vec_env_kwargs: Kwargs | None = None,
    monitor_kwargs: Kwargs | None = None,
    wrapper_kwargs: Kwargs | None = None,
    *,
    vectorization_mode: str | None = None,
) -> VecEnv:
    """Make a Gymnasium vector environment, with episode statistics, adapted to SB3.

    A drop-in replacement for `stable_baselines3.common.env_util.make_vec_env`: with
    `vectorization_mode="sync"` or `"async"`, the same call gives the same stream.

    Args:
        env_id: The id or spec of a registered environment, or a function that makes one.
        n_envs: The number of sub-environments.
        seed: The seed of the first sub-environment at the first reset; the others follow. None
            for random ones.
        start_index: The number of the first sub-environment, in file names and for the seeds of
            action spaces.
        monitor_dir: A folder for monitor files that SB3's `load_results` reads; made if needed.
        wrapper_class: A wrapper, or any function of an environment, put around each one outside
            its monitor.
        env_kwargs: Passed to the environment.
        vec_env_cls: SB3's argument; its `DummyVecEnv` means `"sync"`, its `SubprocVecEnv` means
            `"async"`.
        vec_env_kwargs: Passed to `SyncVectorEnv` or `AsyncVectorEnv` (`start_method` as
            `context`).
        monitor_kwargs: Passed to the monitor; natively vectorized environments take
            `info_keywords` only.
        wrapper_kwargs: Passed to `wrapper_class`.
        vectorization_mode: `"sync"`, `"async"`, or `"vector_entry_point"` for an environment that
            is vectorized natively. Default: native vectorization if its spaces match the single
            environment's and no argument needs single environments; otherwise `"sync"`.

    Returns:
        The adapted environment; from `"sync"` and `"async"`, in SAME_STEP mode by default. A
        natively vectorized one is wrapped in `VecMonitor` (without SB3, in Gymnasium's
        `RecordEpisodeStatistics`).

    Raises:
        ValueError: If the vectorization mode is unknown, or does not go with another argument.
    """
    env_kwargs, vector_kwargs = dict(env_kwargs or {}), dict(vec_env_kwargs or {})
    single = [
        name
        for name, given in (
            ("wrapper_class", wrapper_class),
            ("wrapper_kwargs", wrapper_kwargs),
            ("vec_env_kwargs", vector_kwargs),
            ("monitor_kwargs", set(monitor_kwargs or ()) - {"info_keywords"}),
        )
        if given
    ]
    mode = _mode(env_id, vectorization_mode, vec_env_cls, bool(single))
    if mode is None:
        assert isinstance(env_id, str | EnvSpec)
        mode = "vector_entry_point" if _same_spaces(env_id, env_kwargs) else "sync"
    if mode == "vector_entry_point":
        if single:
            raise ValueError(
                f"Expected no {' or '.join(single)} with vectorization_mode='vector_entry_point' "
                "(of monitor_kwargs, info_keywords only): there are no single environments to "
                "apply them to. Use 'sync' or 'async', or a vector wrapper."
            )
        env = _native(env_id, n_envs, env_kwargs, monitor_dir, start_index, monitor_kwargs or {})
    else:
        local = mode == "sync" and HAS_SB3
        functions = [
            MonitoredEnv(
                env_id,
                rank,
                seed=seed,
                env_kwargs=env_kwargs,
                monitor=monitor_class() if local else EpisodeMonitor,
                monitor_dir=monitor_dir,
                monitor_kwargs=monitor_kwargs or {},
                wrapper_class=wrapper_class,
                wrapper_kwargs=wrapper_kwargs or {},
            )
            for rank in range(start_index, start_index + n_envs)
        ]
        vector_kwargs.setdefault("autoreset_mode", AutoresetMode.SAME_STEP)
        if "start_method" in vector_kwargs:
            vector_kwargs["context"] = vector_kwargs.pop("start_method")
        cls: Callable[..., AnyVectorEnv] = SyncVectorEnv if mode == "sync" else AsyncVectorEnv
        env = to_sb3(cls(functions, **vector_kwargs))
    env.seed(seed)
    return env


def _mode(env_id: EnvId, given: str | None, vec_env_cls: type | None, single: bool) -> str | None:
    """The vectorization mode; None for native vectorization, if the spaces turn out to match."""
    if vec_env_cls is not None:
        meant = {"DummyVecEnv": "sync", "SubprocVecEnv": "async"}.get(vec_env_cls.__name__)
        if meant is None or given not in (None, meant):
            raise ValueError(
                "Expected vec_env_cls to be SB3's DummyVecEnv (for 'sync') or SubprocVecEnv (for "
                f"'async'), in agreement with vectorization_mode, got vec_env_cls={vec_env_cls!r}, "
                f"vectorization_mode={given!r}. Use vectorization_mode alone."
            )
        return meant
    if given is not None:
        given = str(getattr(given, "value", given))  # gymnasium's VectorizeMode, too
        if given not in _MODES:
            raise ValueError(f"Expected vectorization_mode to be one of {_MODES}, got {given!r}.")
        return given
    if single or not isinstance(env_id, str | EnvSpec):
        return "sync"
    spec = gym.spec(env_id) if isinstance(env_id, str) else env_id
    return "sync" if spec.vector_entry_point is None else None


def _same_spaces(env_id: str | EnvSpec, env_kwargs: Kwargs) -> bool:
    """Whether the natively vectorized environment has the spaces of the single one of that id.

    Ale-py's native environment scales and stacks its images, for example.
    """
    single = gym.make(env_id, **env_kwargs)
    native = _make_native(env_id, 1, env_kwargs)
    same = (
        native.single_observation_space == single.observation_space
        and native.single_action_space == single.action_space
    )
    single.close()
    native.close()
    return same


def _make_native(env_id: str | EnvSpec, n_envs: int, env_kwargs: Kwargs) -> AnyVectorEnv:
    # The checker is a wrapper around single environments.
    kwargs = {key: value for key, value in env_kwargs.items() if key != "disable_env_checker"}

    def make(**kwargs: Value) -> AnyVectorEnv:
        return gym.make_vec(env_id, n_envs, vectorization_mode="vector_entry_point", **kwargs)

    try:
        return make(**{"render_mode": "rgb_array", **kwargs})
    except TypeError:  # an environment that takes no render_mode
        return make(**kwargs)


def _native(
    env_id: EnvId,
    n_envs: int,
    env_kwargs: Kwargs,
    monitor_dir: str | None,
    start_index: int,
    monitor_kwargs: Kwargs,
) -> VecEnv:
    """A natively vectorized environment, its episodes recorded around all rows at once."""
    if not isinstance(env_id, str | EnvSpec):
        raise ValueError(
            "Expected the id of a registered environment for vectorization_mode="
            f"'vector_entry_point', got env_id={env_id!r}. Adapt a vector environment with to_sb3."
        )

    source = _make_native(env_id, n_envs, env_kwargs)
    if not HAS_SB3:
        if monitor_dir is not None:
            raise ValueError(
                "Expected monitor_dir=None: the monitor files of natively vectorized environments "
                "are written by SB3's VecMonitor, and SB3 is not installed (extra `sb3`)."
            )
        return to_sb3(gym.wrappers.vector.RecordEpisodeStatistics(source))
    filename = None
    if monitor_dir is not None:
        Path(monitor_dir).mkdir(parents=True, exist_ok=True)
        filename = str(Path(monitor_dir) / f"{start_index}.{SUFFIX}")
    keywords = tuple(monitor_kwargs.get("info_keywords", ()))
    monitored: VecEnv = vec_monitor_class()(to_sb3(source), filename, keywords)
    return monitored
