"""`make_vec_env`: SB3's function of that name, with Gymnasium's vector environments."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, NamedTuple, NoReturn
from uuid import uuid4

import numpy as np
from gymnasium.envs import registration
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from sb3compat._convert.arguments import (
    check_fits,
    check_one_of,
    check_timeout,
    plain_count,
    plain_seed,
)
from sb3compat._convert.modes import parse_mode
from sb3compat._convert.types import Kwargs, SingleEnv
from sb3compat._make.failures import Vectorizer, made_of
from sb3compat._make.monitor import EpisodeMonitor, MonitoredEnv, Run
from sb3compat._make.native import (
    NATIVE,
    is_native_only,
    make_native,
    monitored,
    why_not_native,
)
from sb3compat._parallel.adapter import ParallelVecEnv
from sb3compat._parallel.program import portable
from sb3compat._to_sb3.adapter import to_sb3
from sb3compat._upstream.private import private
from sb3compat._upstream.sb3 import HAS_SB3, VecEnv, of_sb3
from sb3compat._upstream.vec_env import sb3_class
from sb3compat.errors import (
    nearest,
    shown,
)

# What `env_id` may be.
EnvId = str | EnvSpec | Callable[..., SingleEnv]


class _Mode(NamedTuple):
    """How single environments become a vector environment.

    Attributes:
        cls: The class.
        sb3: The name of SB3's class that it stands for.
        defaults: What is passed to it unless `vec_env_kwargs` says otherwise.
    """

    cls: Any
    sb3: str
    defaults: Kwargs


_OF_SINGLES = {
    # SB3 uses the first sub-environment's space, even if the others have different bounds.
    "sync": _Mode(
        SyncVectorEnv,
        "DummyVecEnv",
        {"autoreset_mode": AutoresetMode.SAME_STEP, "observation_mode": "different"},
    ),
    # In NEXT_STEP mode a worker sends the last observation before it resets, so that a
    # sub-environment may use its arrays and info dicts again, and without shared memory it sends
    # them as they are.
    "async": _Mode(
        AsyncVectorEnv,
        "SubprocVecEnv",
        {"autoreset_mode": AutoresetMode.NEXT_STEP, "shared_memory": False},
    ),
    "parallel": _Mode(ParallelVecEnv, "", {}),
}
_MODES = (*_OF_SINGLES, "native", "fastest")
# `gymnasium.make_vec` has other names for some arguments.
_MEANT = {
    "num_env": "n_envs",
    "num_envs": "n_envs",
    "vector_kwargs": "vec_env_kwargs",
    "wrappers": "wrapper_class",
    "mode": "vectorization_mode",
}
# What SB3's users call the modes.
_ALSO = {
    "dummy": " Did you mean 'sync'? It stands for SB3's DummyVecEnv.",
    "subproc": " Did you mean 'async'? It stands for SB3's SubprocVecEnv; 'parallel' needs fewer "
    "workers.",
}
_log = logging.getLogger("sb3compat")


def make_vec_env(
    env_id: EnvId,
    n_envs: int = 1,
    seed: int | None = None,
    start_index: int = 0,
    monitor_dir: str | None = None,
    wrapper_class: Callable[..., SingleEnv] | None = None,
    env_kwargs: Kwargs | None = None,
    vec_env_cls: Vectorizer | None = None,
    vec_env_kwargs: Kwargs | None = None,
    monitor_kwargs: Kwargs | None = None,
    wrapper_kwargs: Kwargs | None = None,
    *,
    vectorization_mode: str | None = None,
    autoreset_mode: AutoresetMode | str | None = None,
    timeout: float | None = None,
    workers: int | None = None,
    **unknown: NoReturn,
) -> VecEnv:
    """Make a Gymnasium vector environment, with episode statistics, adapted to SB3.

    A drop-in replacement for `stable_baselines3.common.env_util.make_vec_env`: the same call
    returns an environment with the same transitions. Only with `vectorization_mode="native"` and
    `"fastest"`, the transitions may differ.

    Args:
        env_id: The id or spec of a registered environment, or a function that makes one. An id
            without a version and `"module:id"` work as in `gymnasium.make`.
        n_envs: The number of sub-environments.
        seed: The seed of the first sub-environment at the first reset; the others follow. None for
            random seeds.
        start_index: The number of the first sub-environment, in file names and for the seeds of
            action spaces.
        monitor_dir: A folder for monitor files that SB3's `load_results` reads; made if needed.
        wrapper_class: A wrapper, or any function of an environment, put around each one outside
            its monitor.
        env_kwargs: Passed to the environment.
        vec_env_cls: SB3's argument; its `DummyVecEnv` means `"sync"`, its `SubprocVecEnv` means
            `"async"`, `sb3compat.ParallelVecEnv` means `"parallel"`. Any other class of a `VecEnv`
            or `VectorEnv`, or function of a list of functions, is called as it is.
        vec_env_kwargs: Passed to `SyncVectorEnv`, `AsyncVectorEnv` (`start_method` as `context`),
            `ParallelVecEnv` or `vec_env_cls`.
        monitor_kwargs: Passed to the monitor; natively vectorized environments take
            `info_keywords` only.
        wrapper_kwargs: Passed to `wrapper_class`.
        vectorization_mode: `"sync"` (the default), `"async"` with one worker for each environment,
            `"parallel"` with as many workers as cores, or `"native"` for an environment that is
            vectorized natively (Gymnasium's `"vector_entry_point"`). `"fastest"` is native
            vectorization if its spaces match the single environment's and no argument needs single
            environments; otherwise `"sync"`. An id that has native vectorization only is native by
            default.
        autoreset_mode: The mode in which Gymnasium's class is built, or the mode of a native
            environment that does not declare it. By default SAME_STEP for `"sync"`; NEXT_STEP for
            `"async"`, so that sub-environments may return the same array each time.
        timeout: For `"async"` and `"parallel"`: how many seconds a step or reset may take. None
            waits for ever.
        workers: For `"parallel"`: the number of worker processes, by default the usable cores.
        **unknown: Other arguments are refused; the error names the argument that was probably
            meant.

    Returns:
        The adapted environment. A natively vectorized one is wrapped in `VecMonitor` (without SB3,
        in Gymnasium's `RecordEpisodeStatistics`).

    Raises:
        ValueError: If the vectorization mode is unknown, or contradicts another argument; if
            `n_envs` is less than 1.
        TypeError: If an argument is unknown, or of the wrong type.
        UnsupportedEnvError: If a function cannot be sent to a worker.
        UnsupportedSpaceError: If the spaces differ, or SB3 has no way to batch one of them.
        WorkerError: If a worker ends while it is started.
        gymnasium.error.Error: If the id is not registered, or `"native"` has no native version.
    """
    _refuse_unknown(unknown)
    n_envs, seed = plain_count("n_envs", n_envs), plain_seed(seed)
    check_timeout(timeout)
    _check_types(env_id, start_index, monitor_dir, wrapper_class)
    env_kwargs = _own_kwargs("env_kwargs", env_kwargs)
    monitor_kwargs = _own_kwargs("monitor_kwargs", monitor_kwargs)
    vec_env_kwargs = _own_kwargs("vec_env_kwargs", vec_env_kwargs)
    wrapper_kwargs = _own_kwargs("wrapper_kwargs", wrapper_kwargs)
    needs_singles = [
        name
        for name, given in (
            ("wrapper_class", wrapper_class),
            ("wrapper_kwargs", wrapper_kwargs),
            ("vec_env_kwargs", vec_env_kwargs),
            ("monitor_kwargs", monitor_kwargs.keys() - {"info_keywords"}),
        )
        if given
    ]
    mode = _named_mode(vectorization_mode, vec_env_cls)
    if workers is not None and mode != "parallel":
        raise ValueError(
            f"Expected workers=None unless vectorization_mode='parallel', got workers={workers} "
            f"with vectorization_mode={shown(vectorization_mode)}. Leave workers out, or pass "
            "vectorization_mode='parallel'."
        )
    if mode == "fastest":
        mode = _fastest(env_id, needs_singles, env_kwargs, autoreset_mode)
    elif mode is None:
        mode = NATIVE if is_native_only(env_id) else "sync"
    if mode == NATIVE:
        if needs_singles:
            raise ValueError(
                f"Expected no {' or '.join(needs_singles)} with vectorization_mode='native' "
                "(monitor_kwargs may contain info_keywords only): there are no single "
                "environments to apply them to. Use 'sync' or 'async', or a vector wrapper."
            )
        adapt = partial(to_sb3, autoreset_mode=autoreset_mode, timeout=timeout)
        record = partial(monitored, adapt, monitor_dir, start_index, monitor_kwargs)
        return _seeded(make_native(env_id, n_envs, env_kwargs), record, seed)
    in_workers = mode in ("async", "parallel")
    named = in_workers and isinstance(env_id, str)
    # What `gymnasium.make` finds, with its warnings and errors.
    spec = private(registration, "_find_spec")(env_id) if named else None
    made_from = env_id
    if mode == "parallel":
        spec = None if spec is None else portable(spec)
        made_from = portable(env_id) if isinstance(env_id, EnvSpec) else env_id
    first = MonitoredEnv(
        made_from,
        start_index,
        seed=seed,
        env_kwargs=env_kwargs,
        # SB3's own would bring torch into each worker.
        monitor=EpisodeMonitor if in_workers or not HAS_SB3 else of_sb3("monitor", "Monitor"),
        monitor_dir=monitor_dir,
        monitor_kwargs=monitor_kwargs,
        wrapper_class=wrapper_class,
        wrapper_kwargs=wrapper_kwargs,
        spec=spec,
        # Any other class may replace workers, whatever arguments that takes.
        run=None if mode in ("sync", "async") else Run(uuid4().hex, time.time()),
    )
    functions = [replace(first, rank=start_index + row) for row in range(n_envs)]
    if mode == "parallel":
        vec_env_kwargs = _with(vec_env_kwargs, workers=workers, timeout=timeout)
        timeout = None
    if autoreset_mode is not None:
        if mode in _OF_SINGLES and "autoreset_mode" not in _arguments(mode):
            raise ValueError(
                f"Expected autoreset_mode=None with vectorization_mode={mode!r}, which resets rows "
                f"within the step, got autoreset_mode={shown(autoreset_mode)}. Leave it out."
            )
        if (other := vec_env_kwargs.get("autoreset_mode")) is not None:
            vec_env_kwargs = {**vec_env_kwargs, "autoreset_mode": parse_mode(other)}
        vec_env_kwargs = _with(vec_env_kwargs, autoreset_mode=parse_mode(autoreset_mode))
    make = _vectorizer(mode, vec_env_cls, vec_env_kwargs)
    return _seeded(made_of(make, functions, mode), partial(to_sb3, timeout=timeout), seed)


def _seeded(made: Any, adapt: Callable[[Any], VecEnv], seed: int | None) -> VecEnv:
    """What was made, adapted and seeded; if that fails, it is closed, and with it the workers."""
    try:
        env = adapt(made)
        env.seed(seed)
    except BaseException:
        made.close()
        raise
    return env


def _check_types(env_id: Any, start_index: Any, monitor_dir: Any, wrapper_class: Any) -> None:
    """Refuse arguments of the wrong type, before one of them fails in a worker."""
    is_id = isinstance(env_id, str | EnvSpec) or callable(env_id)
    wanted = "an id, a spec or a function that makes an environment"
    hint = "Pass an id such as 'CartPole-v1'."
    if hasattr(env_id, "reset") and not isinstance(env_id, type):  # an environment
        is_id, hint = False, "Pass a function that makes it: lambda: gym.make(id)."
    check_fits(is_id, "env_id", env_id, wanted, hint)
    is_int = isinstance(start_index, int | np.integer)
    check_fits(is_int, "start_index", start_index, "an int", "Pass a whole number, such as 0.")
    is_path = monitor_dir is None or isinstance(monitor_dir, str | PathLike)
    check_fits(is_path, "monitor_dir", monitor_dir, "a path or None", "Pass the path of a folder.")
    fits, wanted = wrapper_class is None or callable(wrapper_class), "a class, a function or None"
    check_fits(fits, "wrapper_class", wrapper_class, wanted, "Pass the class itself.")
    around_all = isinstance(wrapper_class, type) and issubclass(wrapper_class, VecEnv | VectorEnv)
    wanted, way_out = "a wrapper of single environments", "Put it around what make_vec_env returns."
    check_fits(not around_all, "wrapper_class", wrapper_class, wanted, way_out)


def _own_kwargs(name: str, given: Any) -> dict[str, Any]:
    """A new dict with these arguments."""
    fits = given is None or isinstance(given, Mapping)
    check_fits(fits, name, given, "a dict or None", "Pass a dict of arguments by name.")
    return dict(given or {})


def _fastest(
    env_id: EnvId, needs_singles: Sequence[str], env_kwargs: Kwargs, autoreset_mode: Any
) -> str:
    obstacle = why_not_native(env_id, env_kwargs, autoreset_mode)
    if needs_singles:
        obstacle = f"{' and '.join(needs_singles)} needs single environments"
    _log.debug("make_vec_env(%r): %s", env_id, obstacle or "native, the fastest")
    return "sync" if obstacle else NATIVE


def _refuse_unknown(unknown: Kwargs) -> None:
    of_workers = inspect.signature(ParallelVecEnv).parameters
    for name in unknown:
        whose = "vec_env_kwargs" if name in of_workers else "env_kwargs"
        own = f"{whose}={{{name!r}: ...}}"
        meant = f" Did you mean {_MEANT.get(name, own)}{'=' * (name in _MEANT)}?"
        # `render_mode` is not far from `autoreset_mode`, and is meant for the environment.
        near = nearest(name, inspect.signature(make_vec_env).parameters, likeness=0.8)
        if near and name not in _MEANT and name not in of_workers:
            meant = f"{near} For the environment, write {own}."
        raise TypeError(
            f"Expected the arguments of SB3's make_vec_env, got {name}={shown(unknown[name])}."
            f"{meant}"
        )


def _named_mode(given: Any, vec_env_cls: Vectorizer | None) -> str | None:
    """The mode that the two arguments ask for; `"custom"` for another class, or None."""
    given = getattr(given, "value", given)  # gymnasium's VectorizeMode, too
    hint = _ALSO.get(given.lower(), "") if isinstance(given, str) else ""
    if given != NATIVE:  # Gymnasium's word for it
        check_one_of("vectorization_mode", given, (None, *_MODES), hint)
    mode = NATIVE if given == "native" else given
    if vec_env_cls is None:
        return mode
    if not callable(vec_env_cls) or (
        isinstance(vec_env_cls, type) and not issubclass(vec_env_cls, VecEnv | VectorEnv)
    ):
        raise ValueError(
            "Expected vec_env_cls to be a VecEnv class, such as SB3's DummyVecEnv (for 'sync') or "
            f"SubprocVecEnv (for 'async'), got vec_env_cls={shown(vec_env_cls)}. Pass one of "
            "these classes, or leave it out."
        )
    meant = "custom"
    for name, each in _OF_SINGLES.items():
        if vec_env_cls in (each.cls, sb3_class(each.sb3) if each.sb3 else None):
            meant = name
    if mode not in (None, meant):
        raise ValueError(
            "Expected vec_env_cls to agree with vectorization_mode, got "
            f"vec_env_cls={shown(vec_env_cls)}, vectorization_mode={shown(given)}. Leave one of "
            "them out."
        )
    return meant


def _with(vec_env_kwargs: Kwargs, **given: Any) -> Kwargs:
    """The `vec_env_kwargs`, and those of these arguments that are not None."""
    given = {name: value for name, value in given.items() if value is not None}
    for name, value in given.items():
        other = vec_env_kwargs.get(name, value)
        if other != value:
            raise ValueError(
                f"Expected vec_env_kwargs to agree with the other arguments, got {name}="
                f"{shown(value)}, vec_env_kwargs={{{name!r}: {shown(other)}}}. Leave one of them "
                "out."
            )
    return {**vec_env_kwargs, **given}


def _vectorizer(mode: str, vec_env_cls: Vectorizer | None, kwargs: Kwargs) -> Vectorizer:
    """The function that makes a vector environment of the functions of its sub-environments."""
    if mode == "custom":
        assert vec_env_cls is not None
        return partial(vec_env_cls, **kwargs)
    cls = _OF_SINGLES[mode].cls
    if mode == "async" and "start_method" in kwargs:
        others = {name: value for name, value in kwargs.items() if name != "start_method"}
        kwargs = _with(others, context=kwargs["start_method"])
    for name in kwargs:
        if name not in (known := _arguments(mode)):
            modes = [other for other in _OF_SINGLES if name in _arguments(other)]
            other = f"Did you mean vectorization_mode={modes[0]!r}?" if modes else "Take it out."
            hint = nearest(name, known, other)
            raise TypeError(
                f"Expected vec_env_kwargs for {cls.__name__}, which takes "
                f"{', '.join(known)}; got {name}={shown(kwargs[name])}.{hint}"
            )
    return partial(cls, **{**_OF_SINGLES[mode].defaults, **kwargs})


def _arguments(mode: str) -> list[str]:
    """What `vec_env_kwargs` may contain; SB3's `start_method` is Gymnasium's `context`."""
    names = list(inspect.signature(_OF_SINGLES[mode].cls).parameters)[1:]
    return [*names, "start_method"] if mode == "async" else names
