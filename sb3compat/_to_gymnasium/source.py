"""Which `VecEnv` this is, whether it can be adapted, and how to drive it.

Nothing here imports SB3: an environment of its classes exists only once it was imported.
"""

from __future__ import annotations

import inspect
import sys
import time
from contextlib import suppress
from copy import deepcopy
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from sb3compat._convert.infos import Info
from sb3compat._to_gymnasium.rows import LocalRows, RemoteRows, Transition
from sb3compat._to_gymnasium.subenvs import LocalEnvs, MethodEnvs, SubEnvs, WorkerEnvs
from sb3compat._to_gymnasium.whole import WholeSteps
from sb3compat._upstream.subproc_vec_env import Workers
from sb3compat.errors import (
    AutoresetModeError,
    ClosedError,
    ConversionError,
    UnsupportedEnvError,
    WorkerError,
)


class VecSource(Protocol):
    """Where the transitions come from: `vec_rows.py` and `vec_steps.py` have three of them."""

    # The rows whose episode has ended and that were not reset since, as far as the user knows.
    ended: npt.NDArray[np.bool_]

    @property
    def broken(self) -> bool:
        """Whether a worker is lost."""

    def check_reset(
        self, rows: list[int], seeds: list[int | None], options: dict[str, Any] | None
    ) -> None:
        """Refuse a reset that could not be done, before anything is."""

    def reset(
        self, rows: list[int], seeds: list[int | None], options: dict[str, Any] | None
    ) -> tuple[Any, list[Info]]:
        """Reset some rows, or all."""

    def prepare(self, actions: Any) -> Any:
        """Check the number of actions, and bring them into the form that `step` takes."""

    def step(self, actions: Any) -> Transition:
        """Step all rows."""

    def settle(self) -> None:
        """Bring the `VecEnv` to where it would be if it had been driven by itself."""


def check_vec_env(vec_env: Any) -> None:
    """Refuse what is no `VecEnv`, nor like one, saying what to pass instead."""
    needed = ("num_envs", "observation_space", "action_space", "reset")
    missing = [name for name in needed if not hasattr(vec_env, name)]
    if not hasattr(vec_env, "step") and not hasattr(vec_env, "step_wait"):
        missing.append("step")
    is_env = isinstance(vec_env, gym.Env)
    if not missing and not is_env and not inspect.isclass(vec_env):
        for name in ("observation_space", "action_space"):
            if not isinstance(getattr(vec_env, name), gym.Space):
                raise UnsupportedEnvError(
                    f"Expected {vec_env} to have a gymnasium.Space of one row as {name}, got "
                    f"{name}={getattr(vec_env, name)!r}."
                )
        if getattr(vec_env, "closed", False):
            raise ClosedError(f"Expected an open environment, but {vec_env} was closed.")
        return
    if is_env:
        hint = "That is a single environment: pass DummyVecEnv([lambda: env])."
    elif inspect.isclass(vec_env) or (callable(vec_env) and missing):
        hint = "That makes environments but is none: call it, and pass what it returns."
    elif isinstance(vec_env, list | tuple):
        hint = "Put them together first: to_gymnasium(DummyVecEnv(list_of_functions))."
    else:
        hint = f"It lacks {missing}."
    raise UnsupportedEnvError(
        f"Expected a stable_baselines3 VecEnv, or an object with its methods, got "
        f"vec_env={vec_env!r:.200} ({type(vec_env).__name__}). {hint}"
    )


def as_mode(value: AutoresetMode | str) -> AutoresetMode:
    """The autoreset mode that is meant, by member, value or name."""
    for mode in AutoresetMode:
        if value is mode or value in (mode.value, mode.name):
            return mode
    raise AutoresetModeError(
        f"Expected autoreset_mode to be one of {[mode.value for mode in AutoresetMode]}, got "
        f"autoreset_mode={value!r} ({type(value).__name__})."
    )


def is_plain(vec_env: Any, name: str) -> bool:
    """Whether it is SB3's own class of that name, no subclass and nothing wrapped."""
    module = sys.modules.get("stable_baselines3.common.vec_env")
    return type(vec_env) is getattr(module, name, None)


def make_vec_source(
    vec_env: Any,
    mode: AutoresetMode,
    *,
    missing_truncation: str | None,
    require_final_obs: bool,
) -> tuple[VecSource, SubEnvs]:
    """How to drive this environment, and how to reach its sub-environments.

    Raises:
        AutoresetModeError: If it cannot be driven in that mode.
        ValueError: If an option is none, or none that goes with the mode.
    """
    if missing_truncation not in (None, "terminated"):
        raise ConversionError(
            "Expected missing_truncation to be None or 'terminated', got "
            f"missing_truncation={missing_truncation!r} ({type(missing_truncation).__name__})."
        )
    if is_plain(vec_env, "DummyVecEnv"):
        return LocalRows(vec_env, mode), LocalEnvs(vec_env.envs)
    if is_plain(vec_env, "SubprocVecEnv"):
        workers = Workers(vec_env)
        return RemoteRows(vec_env, mode, workers), WorkerEnvs(workers)
    if mode == AutoresetMode.NEXT_STEP:
        raise AutoresetModeError(
            f"Expected autoreset_mode='SameStep' or 'Disabled' for {vec_env}, got 'NextStep': it "
            "steps all rows at once, while in NEXT_STEP mode a row that resets is not stepped. "
            "Only a DummyVecEnv or SubprocVecEnv without wrappers or subclass can be stepped row "
            "by row: adapt that, and put Gymnasium's wrappers on top instead of SB3's."
        )
    if mode == AutoresetMode.DISABLED and not require_final_obs:
        raise ConversionError(
            "Expected require_final_obs=True in DISABLED mode, where the last observation of an "
            "episode is what its last step returns, got require_final_obs=False. Use "
            "autoreset_mode='SameStep'."
        )
    steps = WholeSteps(
        vec_env,
        mode,
        assume_terminated=missing_truncation == "terminated",
        require_final_obs=require_final_obs,
    )
    return steps, _subenvs_below(vec_env)


def _subenvs_below(vec_env: Any) -> SubEnvs:
    """The sub-environments of a wrapped or custom environment."""
    base = vec_env
    while hasattr(base, "venv"):
        methods = (getattr(type(base), name) for name in ("get_attr", "set_attr", "env_method"))
        if any(getattr(method, "__module__", "") != _BASE for method in methods):
            return MethodEnvs(vec_env)
        base = base.venv
    if _reaches_as(base, "DummyVecEnv"):
        return LocalEnvs(base.envs)
    if _reaches_as(base, "SubprocVecEnv"):
        return WorkerEnvs(Workers(base))
    return MethodEnvs(vec_env)


def _reaches_as(base: Any, name: str) -> bool:
    """Whether it is SB3's class of that name, or one that reaches its rows by inherited methods."""
    cls = getattr(sys.modules.get("stable_baselines3.common.vec_env"), name, None)
    names = ("get_attr", "set_attr", "env_method", "_get_target_envs", "_get_target_remotes")
    return (
        cls is not None
        and isinstance(base, cls)
        and all(getattr(type(base), n, None) is getattr(cls, n, None) for n in names)
    )


_BASE = "stable_baselines3.common.vec_env.base_vec_env"


def call_if_any(subenvs: SubEnvs, name: str) -> list[Any] | None:
    """What the sub-environments have under that name, or None.

    Many hand-written environments have no sub-environments, and stubs for these methods.
    """
    try:
        return subenvs.call(name, (), {})
    except WorkerError:
        raise
    except Exception:
        return None


def metadata_of(vec_env: Any, subenvs: SubEnvs) -> dict[str, Any]:
    """The metadata of the sub-environments, as `SyncVectorEnv` has them, or of the `VecEnv`."""
    values = call_if_any(subenvs, "metadata")
    if values and isinstance(values[0], dict):
        return deepcopy(values[0])
    return dict(deepcopy(getattr(vec_env, "metadata", None) or {}))


def spec_of(vec_env: Any, subenvs: SubEnvs) -> Any:
    """The `EnvSpec` of the `VecEnv`, or the one that its sub-environments share, or None."""
    spec = getattr(vec_env, "spec", None)
    if spec is None and isinstance(subenvs, LocalEnvs):
        first, *others = subenvs.call("spec", (), {})
        spec = first if all(other == first for other in others) else None
    return spec


def close_vec_env(vec_env: Any, *, broken: bool) -> None:
    """Close the environment; where a worker is gone, terminate those that are left."""
    base = getattr(vec_env, "unwrapped", vec_env)
    if getattr(base, "closed", False) or not hasattr(vec_env, "close"):
        return
    if broken and hasattr(base, "processes"):
        # SB3 would wait for workers that wait for someone to take their answers.
        _terminate(base)
        return
    try:
        vec_env.close()
    except (EOFError, OSError):
        if not hasattr(base, "processes"):
            raise
        _terminate(base)


def _terminate(base: Any) -> None:
    for remote in base.remotes:
        with suppress(OSError):
            remote.send(("close", None))
    until = time.monotonic() + _CLOSE_SECONDS
    for process in base.processes:
        process.join(max(0.0, until - time.monotonic()))
        if process.is_alive():
            process.terminate()
            process.join()
    for remote in base.remotes:
        remote.close()
    base.waiting, base.closed = False, True


# How long a worker may take to close its sub-environment when others are lost already.
_CLOSE_SECONDS = 5.0
