"""The single environments of a vector environment, where it is known how it was made of them."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from sb3compat.conformance.program.instances import counted
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.program.types import Factory, Reference

# Rows and single environments are compared for so many steps, and on to so many truncations of
# those that a VecEnv of its own kind keeps, if they come in time: it may have a limit of its own.
_STEPS, _MOST_STEPS, _CUTS = 30, 1000, 3
_MOST_SECONDS = 2.0
# The attributes of which new ones are made; another attribute has single environments.
TOLD = ("env_fns", "spec")


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


def kept_singles(env: Any, factory: Factory) -> str:
    """As `known_singles`, for a VecEnv of its own kind that keeps single environments.

    They count if its rows do what those of another instance do. What the infos of an ending step
    have may still be wrong.
    """
    kept = [id(single) for single in PRELUDE["singles_in"](env)]
    held = getattr(env, "__dict__", {}).items()
    lists = {name: value for name, value in held if isinstance(value, list | tuple)}
    name = next((name for name, value in lists.items() if [*map(id, value)] == kept), "")
    if not name or len({*kept}) < env.num_envs:
        return ""
    try:
        with closing(counted(factory)) as another:
            return name if _alike(env, getattr(another, name), _CUTS) else ""
    except Exception:  # they take other actions, or no seeds; or there is no second instance
        return ""


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


def _alike(env: Any, singles: Sequence[Any], cuts: int = 0) -> bool:
    """Whether rows return what single environments do, for so many truncations at least.

    What the infos of an ending step have is not compared.
    """
    close, carries, row = map(PRELUDE.__getitem__, ("close", "carries", "row"))
    env.seed(0)
    obs, infos = env.reset(), env.reset_infos
    alone = [single.reset(seed=i) for i, single in enumerate(singles)]
    space = env.action_space
    space.seed(0)
    begin, steps = time.perf_counter(), 0
    while steps < _STEPS or cuts > 0:
        slow = time.perf_counter() - begin > _MOST_SECONDS
        late = steps == _MOST_STEPS or (steps >= _STEPS and slow)
        if late or not all(
            close(row(obs, i), first) and carries(infos[i], info)
            for i, (first, info) in enumerate(alone)
        ):
            return False
        actions = np.stack([space.sample() for _ in singles])
        obs, rewards, dones, infos = env.step(actions)
        results = [single.step(action) for single, action in zip(singles, actions, strict=True)]
        if not close(rewards, np.array([result[1] for result in results])):
            return False
        if dones.tolist() != [bool(result[2] or result[3]) for result in results]:
            return False
        alone = [
            (single.reset()[0], {}) if done else (result[0], result[4])
            for single, done, result in zip(singles, dones, results, strict=True)
        ]
        steps, cuts = steps + 1, cuts - sum(bool(result[3]) for result in results)
    return True


def reference_of(
    factory: Factory, given: Reference | None, singles: str, num_envs: int
) -> Reference | None:
    """The factories of the single environments: the user's, or else those that are known."""
    if given is not None or not singles:
        return given
    if singles in TOLD:
        return told(factory)
    made: Reference = PRELUDE["singles_of"](factory, num_envs, singles)
    return made


def told(factory: Factory, env: Any = None) -> Reference:
    """The factories that an environment keeps; one is asked once, as making it may take long.

    Args:
        factory: Makes it.
        env: One that was made already, or None.
    """
    found: Reference | None = next((known for made_by, known in _told if made_by is factory), None)
    if found is None:
        found = PRELUDE["singles_told"](factory) if env is None else PRELUDE["told_by"](env)
        _told.append((factory, found))
    return found


_told: deque[tuple[Factory, Reference]] = deque(maxlen=4)


def reference_line(singles: str, num_envs: int) -> str:
    """The statement that defines `reference` in a script."""
    if singles in TOLD:
        return "reference = singles_told(make_env)"
    return f"reference = singles_of(make_env, {num_envs}, {singles!r})"
