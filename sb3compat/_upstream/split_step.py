"""Environments whose `step` starts a step and waits for it, by two methods of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from gymnasium.vector import AsyncVectorEnv

from sb3compat._convert.types import Action, AnyVectorEnv, VectorStepResult
from sb3compat._upstream import async_vector_env
from sb3compat._upstream.inherited import changed
from sb3compat._upstream.private import private

# The classes whose `step` calls two methods and does nothing else, by qualified name.
CLASSES = {
    "ale_py.vector_env.AtariVectorEnv": ("send", "recv"),
    "envpool.python.envpool.EnvPoolMixin": ("send", "recv"),
}


class Halves(NamedTuple):
    """What starts and what finishes a step."""

    start: Callable[[Action], None]
    finish: Callable[[], VectorStepResult]


def halves_of(env: AnyVectorEnv) -> Halves | None:
    """The two halves of a step; None where `step` is one call, or not known to be two."""
    if isinstance(env, AsyncVectorEnv):
        if not is_async(env, "step"):
            return None
        return Halves(
            partial(async_vector_env.start_step, env), partial(async_vector_env.finish_step, env)
        )
    if "step" in vars(env):
        return None
    cls = next(cls for cls in type(env).__mro__ if "step" in vars(cls))
    names = CLASSES.get(f"{cls.__module__}.{cls.__qualname__}")
    if names is None:
        return None
    return Halves(private(env, names[0]), private(env, names[1]))


def is_async(env: AnyVectorEnv, *methods: str) -> bool:
    """Whether these methods, and what they call, are `AsyncVectorEnv`'s own, not overridden."""
    return changed(env, AsyncVectorEnv, *methods) is None
