"""What the tests adapt, by the way that it is driven, wrappers that change what it does, steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorWrapper

from tests.closing import closed_later
from tests.envs import Identity
from tests.lockstep import Operation

NEXT_STEP, SAME_STEP = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP
DISABLED = AutoresetMode.DISABLED
MODES = list(AutoresetMode)
mode_of = pytest.mark.parametrize("mode", MODES, ids=[mode.name for mode in MODES])
class_of = pytest.mark.parametrize("cls", [SyncVectorEnv, AsyncVectorEnv])

# Of single environments: what makes the vector environment, its arguments, and its wrapper.
SOURCES: dict[str, tuple[Callable[..., Any], dict[str, Any], Callable[[Any], Any]]] = {
    "sync": (SyncVectorEnv, {}, lambda env: env),
    "sync wrapped": (SyncVectorEnv, {}, Identity),
    "async": (AsyncVectorEnv, {}, lambda env: env),
    "async unshared": (AsyncVectorEnv, {"shared_memory": False}, lambda env: env),
    "async wrapped": (AsyncVectorEnv, {}, Identity),
}
ASYNC = [name for name in SOURCES if name.startswith("async")]


def made(name: str, fns: Sequence[Any], mode: AutoresetMode = NEXT_STEP, **kwargs: Any) -> Any:
    """The source of that name, of these functions; it is closed after the test."""
    make, own, wrap = SOURCES[name]
    return wrap(closed_later(make(fns, autoreset_mode=mode, **own, **kwargs)))


def step(env: Any, action: int = 0) -> Any:
    """A step with one action for all rows."""
    return env.step(np.full(env.num_envs, action))


def uniform(program: list[Operation]) -> list[Operation]:
    """The program with the options of the first row for all, as native environments need it."""
    return [(name, value[0] if isinstance(value, list) else value) for name, value in program]


class Changed(VectorWrapper):
    """Changes what a step and a reset return."""

    def __init__(
        self,
        env: Any,
        step: Callable[..., Any] = lambda *result: result,
        reset: Callable[..., Any] = lambda *result: result,
    ) -> None:
        super().__init__(env)
        self.of_step, self.of_reset = step, reset

    def reset(self, **kwargs: Any) -> Any:
        return self.of_reset(*self.env.reset(**kwargs))

    def step(self, actions: Any) -> Any:
        return self.of_step(*self.env.step(actions))


def recast(env: Any, change: Callable[[Any], Any]) -> Changed:
    """Changes observations, last ones as well, and leaves the space as it is."""

    def changed(obs: Any, *rest: Any) -> Any:
        *others, infos = rest
        if "final_obs" in infos:
            finals = [None if final is None else change(final) for final in infos["final_obs"]]
            infos = {**infos, "final_obs": np.array([*finals, None], dtype=object)[:-1]}
        return change(obs), *others, infos

    return Changed(env, step=changed, reset=changed)


def cast(obs: Any, dtype: Any) -> Any:
    """A third of an observation, or of a batch of them, in this dtype."""
    if isinstance(obs, dict):
        return {key: cast(part, dtype) for key, part in obs.items()}
    if isinstance(obs, tuple):
        return tuple(cast(part, dtype) for part in obs)
    return (np.asarray(obs) / 3).astype(dtype)[()]


def cast_vector(env: Any, dtype: Any) -> Any:
    """Changes observations, and leaves the space as it is."""
    return recast(env, partial(cast, dtype=dtype))


class Passes(VectorWrapper):
    """Passes on other options of a reset; `got` is what it has got."""

    def __init__(self, env: Any, change: Callable[[Any], Any] = lambda options: options) -> None:
        super().__init__(env)
        self.change = change
        self.got: dict[str, Any] = {}

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.got = {"seed": seed, "options": options}
        return self.env.reset(seed=seed, options=self.change(options))


class Gives(gym.Wrapper[Any, Any, Any, Any]):
    """Gives infos of its own in each step, maybe but the last of an episode, and in each reset."""

    def __init__(self, env: Any, step: Any = (), reset: Any = (), *, last: bool = True) -> None:
        super().__init__(env)
        self.in_step, self.in_reset, self.last = dict(step), dict(reset), last

    def reset(self, **kwargs: Any) -> Any:
        obs, info = self.env.reset(**kwargs)
        return obs, {**info, **self.in_reset}

    def step(self, action: Any) -> Any:
        *result, info = self.env.step(action)
        ended = result[2] or result[3]
        return *result, {**info, **({} if ended and not self.last else self.in_step)}
