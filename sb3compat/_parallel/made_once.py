"""Functions that return one environment instead of each making its own.

In one process, that is seen at once. But each worker has a copy of what its functions refer to, and
such copies would be rows with the same random numbers. So the worker looks for what a function has
returned among the environments that the function refers to, and the parent knows which of these
are one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import gymnasium as gym
from gymnasium.vector import VectorEnv

from sb3compat._upstream.vec_env import is_vec_env
from sb3compat.errors import UnsupportedEnvError

# How many objects are looked at to find the environments that a function refers to.
_LOOKED_AT = 1000


def environments_in(env_fn: Callable[[], Any]) -> list[object]:
    """The environments, without wrappers, that a function carries or finds in its module.

    A copy of the function in another process has copies of them, in the same order.
    """
    found: list[object] = []
    seen: dict[int, object] = {}
    pending: list[Any] = [env_fn]
    while pending and len(seen) < _LOOKED_AT:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        with suppress(Exception):  # an object that stands for another one may raise at any question
            if isinstance(value, gym.Env | VectorEnv) or is_vec_env(value):
                found.append(base_of(value))
            else:
                pending += _referred_to(value)
    return found


def _referred_to(value: Any) -> list[Any]:
    if isinstance(value, FunctionType):
        named = [value.__globals__[n] for n in value.__code__.co_names if n in value.__globals__]
        return [*named, *(value.__closure__ or ()), value.__defaults__, value.__kwdefaults__]
    if isinstance(value, CellType):
        return [value.cell_contents] if value != CellType() else []
    if isinstance(value, MethodType):
        return [value.__self__, value.__func__]
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, type | ModuleType):
        return []
    # Any other object, such as that of SB3 around each function.
    return list(getattr(value, "__dict__", {}).values())


def position_of(env: Any, candidates: Sequence[object]) -> int | None:
    """Which of some environments this one is, wrappers aside; None if it is another one."""
    return next((i for i, other in enumerate(candidates) if other is base_of(env)), None)


def check_made_once(env_fns: Sequence[Callable[[], Any]], returned: Sequence[int | None]) -> None:
    """Refuse functions of different workers that return one environment, of which each has a copy.

    Args:
        env_fns: All functions.
        returned: Which of its `environments_in` each has returned; None if it has made another.

    Raises:
        UnsupportedEnvError: If two of them have returned the same one.
    """
    seen: set[int] = set()
    for number, (env_fn, position) in enumerate(zip(env_fns, returned, strict=True)):
        own = [] if position is None else environments_in(env_fn)[position : position + 1]
        if not seen.isdisjoint(map(id, own)):
            raise made_twice(number, own[0])
        seen.update(map(id, own))


def base_of(env: Any) -> object:
    """The environment inside all wrappers."""
    return getattr(env, "unwrapped", env)


def made_twice(number: int, env: object) -> UnsupportedEnvError:
    """The error if a function has returned the environment of an earlier one."""
    return UnsupportedEnvError(
        f"Expected env_fns[{number}] to make a new environment, but it has returned {env}, which "
        "an earlier one has returned already. Write `lambda: gym.make(id)`, not `lambda: env`."
    )
