"""The commands on a sub-environment, wherever it runs; the rows of all sources are driven by them.

The workers of a `SubprocVecEnv` import this module; it imports neither SB3 nor torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sb3compat._convert.arrays import copy_value
from sb3compat._convert.infos import own_info
from sb3compat._convert.types import (
    Action,
    Info,
    Kwargs,
    Observation,
    ResetResult,
    SingleEnv,
    Value,
)

# Observation, reward, terminated, truncated and info of a step; and observation and info of the
# reset within it, if there was one. A tuple, as there is one for each row of each step.
Outcome = tuple[Observation, Value, bool, bool, Info, ResetResult | None]


def step_env(env: SingleEnv, action: Action, same_step: bool) -> Outcome:
    """Step a sub-environment and, with `same_step`, reset it where that ends its episode."""
    observation, reward, terminated, truncated, info = env.step(action)
    if not (terminated or truncated):
        return observation, reward, False, False, info, None
    first = None
    if same_step:
        # Before the reset, which may overwrite the very objects that `step` returned.
        observation, info = copy_value(observation), own_info(info)
        first = env.reset()
    # Both at once is terminated, as everywhere in SB3.
    return observation, reward, bool(terminated), not terminated, info, first


def reset_env(env: SingleEnv, kwargs: Kwargs) -> ResetResult:
    """Reset a sub-environment."""
    return env.reset(**kwargs)


def call_env(env: SingleEnv, name: str, args: Value, kwargs: Kwargs) -> Value:
    """An attribute of a sub-environment, called if it can be, as Gymnasium's `call` does."""
    value = env.get_wrapper_attr(name)
    return value(*args, **kwargs) if callable(value) else value


def set_env(env: SingleEnv, name: str, value: Value) -> None:
    """Set an attribute on the wrapper that has it, as Gymnasium's `set_attr` does."""
    env.set_wrapper_attr(name, value)


_COMMANDS: dict[str, Callable[..., Value]] = {
    "step": step_env,
    "reset": reset_env,
    "call": call_env,
    "set": set_env,
}


def run_command(env: SingleEnv, name: str, *args: Any) -> Value:
    """Run the command of that name: `step`, `reset`, `call` or `set`."""
    return _COMMANDS[name](env, *args)
