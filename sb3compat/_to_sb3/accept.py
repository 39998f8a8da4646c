"""Check the environment to adapt, and find its autoreset mode."""

from __future__ import annotations

import inspect
from typing import TypeGuard

import gymnasium as gym
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from sb3compat._convert.modes import declared_mode, names_mode, parse_mode
from sb3compat._convert.observations import Observations
from sb3compat._convert.types import (
    AnySync,
    AnyVectorEnv,
    HoldsVecEnv,
    holds_vec_env,
    inside_wrappers,
    wrappers_of,
)
from sb3compat._rows.subenvs import subenvs_of
from sb3compat._to_sb3.bases import base_of
from sb3compat._upstream.inherited import keeps_all
from sb3compat._upstream.sb3 import VecEnv
from sb3compat.errors import (
    AutoresetModeError,
    UnsupportedEnvError,
    UnsupportedSpaceError,
    shown,
    warn,
    was_closed,
)


def as_vec_env(env: object, **options: object) -> VecEnv | None:
    """The `VecEnv` that needs no adapter: `env` itself, or what `to_gymnasium` has adapted.

    Args:
        env: The argument of `to_sb3`.
        options: Other arguments, which have no effect on a `VecEnv`.

    Returns:
        The `VecEnv`, ready to be driven directly; None where an adapter is needed.

    Raises:
        UnsupportedEnvError: If it is a wrapper of SB3 around a Gymnasium vector environment.
        ValueError: If there is one, and an option is not None.
    """
    # SB3's wrappers accept any object, and the policy fails later. Without SB3, none is a wrapper.
    inside = env.unwrapped if isinstance(env, VecEnv) else None
    if isinstance(inside, VectorEnv):
        wrapper = type(env).__name__
        raise UnsupportedEnvError(
            f"Expected {wrapper} to be around a VecEnv, got {wrapper} around the VectorEnv "
            f"{inside}. Adapt the environment first: {wrapper}(to_sb3(env))."
        )
    if not isinstance(env, VecEnv) and not _presents_vec_env(env):
        return None
    for name, value in options.items():
        if value is not None:
            raise ValueError(
                f"Expected no {name}, as {env} is a VecEnv already, or made from one, "
                f"got {name}={value!r}. Leave it out."
            )
    vec_env: VecEnv | None = env if isinstance(env, VecEnv) else env.settled()
    return vec_env


def check_env(env: object) -> None:
    """Refuse an environment that no source can drive.

    Raises:
        UnsupportedEnvError: If it is no vector environment; the message says what to pass instead.
        ClosedError: If it was closed.
    """
    if isinstance(env, VectorEnv):
        base = inside_wrappers(env)
        for space in ("single_observation_space", "single_action_space"):
            if not isinstance(getattr(env, space, None), gym.Space):
                raise UnsupportedEnvError(
                    f"Expected {env} to have a {space}, the space of one row, got "
                    f"{space}={getattr(env, space, None)!r}. Set it in the environment."
                )
        if base.closed:
            raise was_closed(env)
        if env.num_envs != base.num_envs:
            raise UnsupportedEnvError(
                f"Expected wrappers that present each row of {base} as one row, got "
                f"num_envs={env.num_envs} of {env} and num_envs={base.num_envs} of the environment "
                "inside. Derive a class from gymnasium.vector.VectorEnv that holds the environment "
                "and steps it, and use this class instead of the wrapper."
            )
        _check_spaces(env)
        if isinstance(base, SyncVectorEnv):
            _check_rows(base)
        return
    got = f"got env={shown(env)} ({type(env).__name__})"
    raise UnsupportedEnvError(f"Expected a gymnasium.vector.VectorEnv, {got}. {_hint(env)}")


def _check_spaces(env: AnyVectorEnv) -> None:
    """Refuse wrappers that change the space of a batch and leave that of a row, which SB3 gets."""
    for wrapper in wrappers_of(env):
        for space in ("observation_space", "action_space"):
            single = f"single_{space}"
            own, inside = (getattr(each, space, None) for each in (wrapper, wrapper.env))
            row = getattr(wrapper, single)
            if own != inside and row == getattr(wrapper.env, single, None):
                raise UnsupportedEnvError(
                    f"Expected {wrapper} to change its {single} as it changes its {space}, got "
                    f"{single}={shown(row)} as inside, and {space}={shown(own)}. Set its {single} "
                    "as well."
                )


def _hint(env: object) -> str:
    if isinstance(env, gym.Env):
        return (
            "That is a single environment, which Stable-Baselines3's algorithms take as well. Use "
            "gymnasium.make_vec(id, num_envs=n) or SyncVectorEnv([make_env] * n) for n copies."
        )
    if inspect.isclass(env) or callable(env):
        return "That is a function or class that makes environments: call it, and pass the result."
    if isinstance(env, str):
        return f"Make the environment first, and pass it: gymnasium.make_vec({env!r}, num_envs=n)."
    if isinstance(env, list | tuple):
        return "Put them together, and pass the result: gymnasium.vector.SyncVectorEnv(functions)."
    return "Make one, and pass it: gymnasium.make_vec(id, num_envs=n)."


def _check_rows(env: AnySync) -> None:
    """Refuse vector environments as rows, and one environment in two rows."""
    seen: dict[int, int] = {}
    for i, single in enumerate(env.envs):
        if isinstance(single, VectorEnv):
            raise UnsupportedEnvError(
                f"Expected a single environment in each row of {env}, but row {i} holds {single}, "
                "a vector environment. Pass that one to to_sb3; or to put several together, pass "
                "functions that make them to ParallelVecEnv."
            )
        first = seen.setdefault(id(single.unwrapped), i)
        if first != i:
            raise UnsupportedEnvError(
                f"Expected a different environment in each row, but rows {first} and {i} hold the "
                f"same object {single.unwrapped}. Let the function given to SyncVectorEnv make a "
                "new one at each call: `lambda: gym.make(id)`, not `lambda: env`."
            )


def _presents_vec_env(env: object) -> TypeGuard[HoldsVecEnv]:
    """Whether `to_gymnasium` has adapted it from a `VecEnv`, and no subclass presents it anew."""
    held = holds_vec_env(env) and isinstance(env.vec_env, VecEnv)
    return held and keeps_all(env, HoldsVecEnv)


def check_starts(env: AnyVectorEnv, observations: Observations) -> None:
    """Refuse rows whose spaces start at different numbers, because all rows are shifted alike.

    Args:
        env: The environment.
        observations: The layout of what it presents.

    Raises:
        UnsupportedSpaceError: If they do.
    """
    base = inside_wrappers(env)
    if getattr(base, "observation_mode", "same") == "same":
        return
    own = getattr(base, "single_observation_space", None) is env.single_observation_space
    if not own and observations.counts_from_zero:  # a wrapper has made other observations of them
        return
    spaces = subenvs_of(env).ask(("get", "observation_space"), range(env.num_envs))
    first, *others = (Observations(space, 1).starts for space in spaces)
    for i, starts in enumerate(others, 1):
        if starts != first:
            raise UnsupportedSpaceError(
                "Expected all rows to count Discrete and MultiDiscrete observations from the "
                f"same start as row 0, {first}, got {starts} in row {i}. "
                "Stable-Baselines3 counts from 0, and has one space for all rows. Shift them by a "
                "wrapper on the sub-environments."
            )


def find_mode(env: AnyVectorEnv, given: AutoresetMode | str | None) -> AutoresetMode:
    """The autoreset mode: from the argument, else from the instance, else from its metadata.

    An argument that contradicts what the environment declares is a warning, but for Gymnasium's own
    classes and the results of `to_gymnasium`, whose mode is known.

    Raises:
        AutoresetModeError: If none of them says, or the argument contradicts a known mode.
    """
    base = inside_wrappers(env)
    declared = declared_mode(env)
    if given is not None:
        mode = parse_mode(given)
        if base_of(base).is_known and parse_mode(declared, "its mode") != mode:
            raise AutoresetModeError(
                f"Expected autoreset_mode={declared}, which is what {base} was built with, got "
                f"autoreset_mode={mode}. Leave the argument out, or build the environment with "
                "the mode that you want."
            )
        if declared is not None and not names_mode(declared, mode):
            warn(
                f"{base} declares the autoreset mode {declared}, but the argument "
                f"autoreset_mode={given!r} overrides it. If the environment does not reset its "
                "rows in that mode, episodes will end wrongly: leave the argument out."
            )
        return mode
    if declared is not None:
        return parse_mode(declared, f"the autoreset mode that {type(base).__name__} declares")
    raise AutoresetModeError(
        f"Expected {base} to declare its autoreset mode, as the attribute `autoreset_mode` or in "
        "metadata['autoreset_mode'], got neither. Say what it does when an episode ends: "
        "autoreset_mode='NextStep' | 'SameStep' | 'Disabled', an argument of to_sb3 and "
        "make_vec_env."
    )
