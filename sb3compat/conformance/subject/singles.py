"""The single environments of a vector environment, where it is known how it was made of them."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.program.types import Factory, Reference


def known_singles(env: Any) -> str:
    """The attribute that has the single environments, or their factories; empty if none has.

    A subclass or a wrapper may change what single environments return, and does not count.
    """
    module = sys.modules.get("stable_baselines3.common.vec_env.dummy_vec_env")
    if module is not None and type(env) is module.DummyVecEnv:
        return "envs"
    if type(env) not in (SyncVectorEnv, AsyncVectorEnv):
        return ""
    # In the mode "different" observations are not batched as those of the first one.
    spaces = env.observation_space, env.single_observation_space, env.num_envs
    return "env_fns" if PRELUDE["batched"](*spaces) else ""


def reference_of(
    factory: Factory, given: Reference | None, singles: str, num_envs: int
) -> Reference | None:
    """The factories of the single environments: the user's, or else those that are known."""
    if given is not None or not singles:
        return given
    if singles == "env_fns":
        return _fns(factory)
    made: Reference = PRELUDE["singles_of"](factory, num_envs)
    return made


@lru_cache(maxsize=4)
def _fns(factory: Factory) -> Reference:
    env = factory()
    try:
        return list(env.env_fns)
    finally:
        env.close()


def reference_line(singles: str, num_envs: int) -> str:
    """The statement that defines `reference` in a script."""
    if singles == "env_fns":
        return "reference = make_env().env_fns"
    return f"reference = singles_of(make_env, {num_envs})"
