"""Check the environment to adapt."""

from __future__ import annotations

import inspect

import gymnasium as gym
from gymnasium.vector import AutoresetMode

from sb3compat._convert.modes import declared_mode, names_mode
from sb3compat._convert.types import AnyVectorEnv
from sb3compat.errors import (
    AutoresetModeError,
    ConversionError,
    UnsupportedEnvError,
    shown,
    was_closed,
)


def check_vec_env(vec_env: object) -> None:
    """Refuse an object without the methods of a `VecEnv`, and say what to pass instead."""
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
                    f"{name}={getattr(vec_env, name)!r}. Set it in the environment."
                )
        if getattr(vec_env, "closed", False):
            raise was_closed(vec_env)
        return
    raise UnsupportedEnvError(
        f"Expected a stable_baselines3 VecEnv, or an object with its methods, got "
        f"vec_env={shown(vec_env)} ({type(vec_env).__name__}). "
        f"{_hint(vec_env, missing)}"
    )


def check_vector_env(
    env: AnyVectorEnv, mode: AutoresetMode | None, **options: tuple[object, object]
) -> None:
    """Refuse what would change a `VectorEnv`, which is returned as it is.

    Args:
        env: The environment.
        mode: The autoreset mode that was asked for, if any.
        **options: The other arguments, each with its default.

    Raises:
        AutoresetModeError: If the environment does not declare that mode.
        ValueError: If an option was given.
    """
    declared = declared_mode(env)
    if mode is not None and not names_mode(declared, mode):
        raise AutoresetModeError(
            f"Expected no autoreset_mode, or autoreset_mode={declared}, as {env} is a VectorEnv "
            f"already and is returned as it is; got autoreset_mode={mode}. Build the environment "
            "in that mode. For SAME_STEP or DISABLED, pass to_sb3(env) instead."
        )
    for name, (value, default) in options.items():
        if value is not default:
            raise ConversionError(
                f"Expected no {name}, as {env} is a VectorEnv already and is returned as it is, "
                f"got {name}={value!r}. Leave it out."
            )


def _hint(vec_env: object, missing: list[str]) -> str:
    if isinstance(vec_env, gym.Env):
        return "That is a single environment: pass DummyVecEnv([lambda: env])."
    if inspect.isclass(vec_env) or (callable(vec_env) and missing):
        return "That is a function or class that makes environments: call it, and pass the result."
    if isinstance(vec_env, list | tuple):
        return "Put them together first: to_gymnasium(DummyVecEnv(list_of_functions))."
    return f"It has no {', '.join(missing)}. Pass what SB3's make_vec_env makes, for example."
