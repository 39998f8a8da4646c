"""The single environments of a vector environment, where it is known how it was made of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.program.types import Factory, Reference

# Steps that rows and what their specs make are compared for.
_STEPS = 30


def known_singles(env: Any) -> str:
    """The attribute that has the single environments, their factories or specs; empty if none has.

    A subclass or a wrapper may change what single environments return, and does not count.
    """
    modules = "stable_baselines3.common.vec_env.{}_vec_env"
    dummy, subproc = (sys.modules.get(modules.format(name)) for name in ("dummy", "subproc"))
    if dummy is not None and type(env) is dummy.DummyVecEnv:
        return "envs"
    if subproc is not None and type(env) is subproc.SubprocVecEnv:
        return "spec" if _as_specified(env) else ""
    if type(env) not in (SyncVectorEnv, AsyncVectorEnv):
        return ""
    # In the mode "different" observations are not batched as those of the first one.
    spaces = env.observation_space, env.single_observation_space, env.num_envs
    return "env_fns" if PRELUDE["batched"](*spaces) else ""


def _as_specified(env: Any) -> bool:
    """Whether the rows of a SubprocVecEnv do what environments made from their specs do.

    The code that made them may have changed them, or removed wrappers.
    """
    singles: list[Any] = []
    try:
        limited = env.env_is_wrapped(TimeLimit)
        for spec, has_limit in zip(env.get_attr("spec"), limited, strict=True):
            if has_limit != (spec.max_episode_steps is not None):
                return False
            singles.append(gym.make(spec))
        return _alike(env, singles)
    except Exception:  # no specs, or specs from which nothing can be made
        return False
    finally:
        for single in singles:
            with suppress(Exception):
                single.close()


def _alike(env: Any, singles: Sequence[Any]) -> bool:
    close, row = PRELUDE["close"], PRELUDE["row"]
    env.seed(0)
    obs = env.reset()
    alone = [single.reset(seed=i)[0] for i, single in enumerate(singles)]
    space = env.action_space
    space.seed(0)
    for _ in range(_STEPS):
        if not all(close(row(obs, i), single) for i, single in enumerate(alone)):
            return False
        actions = np.stack([space.sample() for _ in singles])
        obs, rewards, dones, _ = env.step(actions)
        results = [single.step(action) for single, action in zip(singles, actions, strict=True)]
        if not all(
            close(reward, result[1]) for reward, result in zip(rewards, results, strict=True)
        ):
            return False
        if dones.tolist() != [bool(result[2] or result[3]) for result in results]:
            return False
        alone = [
            single.reset()[0] if done else result[0]
            for single, done, result in zip(singles, dones, results, strict=True)
        ]
    return True


def reference_of(
    factory: Factory, given: Reference | None, singles: str, num_envs: int
) -> Reference | None:
    """The factories of the single environments: the user's, or else those that are known."""
    if given is not None or not singles:
        return given
    if singles == "envs":
        made: Reference = PRELUDE["singles_of"](factory, num_envs)
        return made
    return _told(factory)


@lru_cache(maxsize=4)
def _told(factory: Factory) -> Reference:
    told: Reference = PRELUDE["singles_told"](factory)
    return told


def reference_line(singles: str, num_envs: int) -> str:
    """The statement that defines `reference` in a script."""
    if singles == "envs":
        return f"reference = singles_of(make_env, {num_envs})"
    return "reference = singles_told(make_env)"
