"""Environments for the tests: scripted, awkward, and the same in every process."""

from __future__ import annotations

import random
import sys
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorWrapper

GYMNASIUM = tuple(int(part) for part in gym.__version__.split(".")[:2])

ENDINGS = ("terminated", "truncated", "both")


@dataclass(frozen=True)
class Script:
    """What a `ScriptedEnv` does."""

    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    lengths: tuple[int, ...] = (3,)  # of the episodes, by row and number of resets
    endings: tuple[str, ...] = ("terminated",)
    infos: str = "plain"  # "none", "plain" (one type for each key), or "wild"
    reuse: bool = False  # return the same array and the same dict each time
    shared: bool = False  # and those of all rows of a process are the same ones


# What the environments with `shared` have in common, by what it is: one dict, list or array each.
_SHARED: dict[str, Any] = {"info": {}, "trail": [], "stamps": np.zeros(3, np.int64)}


class ScriptedEnv(gym.Env[Any, Any]):
    """Its results depend only on the script, the row, the seed and the calls so far."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 7}

    def __init__(self, script: Script, row: int = 0) -> None:
        self.script, self.row = script, row
        self.observation_space = deepcopy(script.observation_space)
        self.action_space = deepcopy(script.action_space)
        self.render_mode = "rgb_array"
        self.mu = 0.5
        self._resets = self._time = self._used_seed = 0
        self._buffer: Any = None
        self._info: dict[str, Any] = {}
        self._trail: list[Any] = [np.zeros(1)]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self._used_seed = seed
        self._resets += 1
        self._time = 0
        info = {"resets": self._resets, "seed": -1 if seed is None else seed, "shared": 0}
        info["given"] = int(options is not None)
        if self.script.infos == "wild":
            info["options"] = deepcopy(options)  # type: ignore[assignment]
        elif options:
            info["option"] = options.get("x", 0)
        return self._obs(), self._own(info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._time += 1
        lengths, endings = self.script.lengths, self.script.endings
        which = self.row + self._resets
        done = self._time >= lengths[which % len(lengths)]
        ending = endings[which % len(endings)] if done else ""
        info: dict[str, Any] = {"shared": self._time}
        if self.script.infos != "none":
            info["action"] = deepcopy(action)
            if self.script.infos == "plain":
                info["action"] = _plain(action)
            info.update(self._random_info())
        reward = 0.1 * self._time + self.row
        terminated, truncated = ending in ("terminated", "both"), ending in ("truncated", "both")
        return self._obs(), reward, terminated, truncated, self._own(info)

    def render(self) -> Any:
        return np.full((4, 4, 3), self.row, np.uint8)

    def set_mu(self, mu: float) -> float:
        self.mu = mu
        return mu + self.row

    def fail(self) -> None:
        raise KeyError("several", "arguments")

    def _number(self) -> int:
        parts = (self.row, self._used_seed, self._resets, self._time)
        return sum(p * f for p, f in zip(parts, (7919, 104729, 1299709, 15485863), strict=True))

    def _obs(self) -> Any:
        self.observation_space.seed(self._number() % 2**31)
        obs = self.observation_space.sample()
        if not (self.script.reuse or self.script.shared):
            return obs
        if self.script.shared:
            buffer = _SHARED.setdefault(repr(self.observation_space), deepcopy(obs))
            return _overwrite(buffer, obs)
        if self._buffer is None:
            self._buffer = deepcopy(obs)
        self._buffer = _overwrite(self._buffer, obs)
        return self._buffer

    def _own(self, info: dict[str, Any]) -> dict[str, Any]:
        if not (self.script.reuse or self.script.shared):
            return info
        self._trail.append(self._time)
        self._trail[0] += 1
        if self.script.shared:
            return self._in_shared(info)
        self._info.clear()
        self._info.update(info)
        self._info["trail"] = self._trail
        return self._info

    def _in_shared(self, info: dict[str, Any]) -> dict[str, Any]:
        _SHARED["trail"][:] = deepcopy(self._trail)
        _SHARED["stamps"][:] = self.row, self._resets, self._time
        _SHARED["info"].clear()
        info |= {"trail": _SHARED["trail"], "stamps": _SHARED["stamps"]}
        _SHARED["info"].update(info, deeper={"stamps": _SHARED["stamps"], "info": info})
        shared: dict[str, Any] = _SHARED["info"]
        return shared

    def _random_info(self) -> dict[str, Any]:
        rng = random.Random(self._number())
        t = self._time
        plain = {
            "int": t,
            "float": t / 3,
            "flag": t % 2 == 0,
            "name": f"step {t}",
            "array": np.array([t, self.row], np.float32),
            "half": np.float32(t / 7),
            "nested": {"a": t, "b": {"c": float(t)}},
            "_hidden": t,
            "nothing": None,
        }
        if self.script.infos == "wild":
            plain |= {
                "mixed": rng.choice([1, 1.75, "text", None, np.zeros(3), [1, [2]], {"k": 1}]),
                "ragged": np.arange(rng.randrange(4)),
                "empty": {},
                "_mixed": "no mask",
                "list": [np.ones(2), {"deep": [1]}],
                "int8": np.int8(t),
                "TimeLimit.truncated": "not yours",
            }
        kept = [key for key in plain if rng.random() < 0.7]
        return {key: plain[key] for key in kept}


def _plain(action: Any) -> Any:
    """NumPy scalars as Python numbers: Gymnasium's batching of infos does not keep them apart."""
    if isinstance(action, dict):
        return {key: _plain(part) for key, part in action.items()}
    if isinstance(action, np.generic | np.ndarray) and action.ndim == 0:
        return action.item()
    return deepcopy(action)


def _overwrite(buffer: Any, obs: Any) -> Any:
    if isinstance(buffer, dict):
        for key in buffer:
            buffer[key] = _overwrite(buffer[key], obs[key])
        return buffer
    if isinstance(buffer, tuple):
        return tuple(_overwrite(b, o) for b, o in zip(buffer, obs, strict=True))
    if isinstance(buffer, np.ndarray):
        buffer[...] = obs
        return buffer
    return obs


class Returns(gym.Wrapper[Any, Any, Any, Any]):
    """A scripted environment that returns something else from its steps or resets."""

    def __init__(self, row: int = 0, *, step: Any = None, reset: Any = None, **chosen: Any) -> None:
        super().__init__(ScriptedEnv(script(**chosen), row))
        self.of_step, self.of_reset = step or _as_it_is, reset or _as_it_is

    def reset(self, **kwargs: Any) -> Any:
        return self.of_reset(*self.env.reset(**kwargs))

    def step(self, action: Any) -> Any:
        return self.of_step(*self.env.step(action))


def _as_it_is(*result: Any) -> Any:
    return result


def overriding(env: Any, name: str, on_instance: bool = False) -> list[str]:
    """Give an environment a method of its own, in a subclass or by itself; the calls of it."""
    calls: list[str] = []
    cls: Any = type(env)

    class Own(cls):
        """It has no name by which a worker could find it."""

    def own(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        return getattr(cls, name)(self, *args, **kwargs)

    if on_instance:
        setattr(env, name, own.__get__(env))
    else:
        setattr(Own, name, own)
        env.__class__ = Own
    return calls


class Drawing(gym.Env[Any, Any]):
    """Its observations are random numbers of one generator; a reset with options fails."""

    observation_space = spaces.Box(0, 1, (1,), np.float64)
    action_space = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        if options:
            raise KeyError("the reset fails")
        return self.np_random.random(1), {"seed": seed}

    def step(self, action: Any) -> Any:
        return self.np_random.random(1), 0.0, False, False, {}


class Strict(ScriptedEnv):
    """Has the attributes that it names, and no others."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_sb3compat"):
            raise TypeError(f"no field {name!r}")
        super().__setattr__(name, value)


class Copying(gym.Wrapper[Any, Any, Any, Any]):
    """Returns copies, as a careful author does. The reference needs it, our side does not."""

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        return deepcopy(self.env.reset(**kwargs))

    def step(self, action: Any) -> Any:
        return deepcopy(self.env.step(action))


class WorkerReport(gym.Wrapper[Any, Any, Any, Any]):
    """Says which modules its process has imported."""

    def loaded(self, name: str) -> bool:
        return name in sys.modules


def scaling(factor: float) -> Any:
    """A new class of wrappers, with the name of all others that this function has made."""

    class Scale(gym.RewardWrapper[Any, Any]):
        def reward(self, reward: Any) -> Any:
            return reward * factor

    return Scale


class Holder:
    """Holds a class of wrappers."""

    class Inner(gym.Wrapper[Any, Any, Any, Any]):
        """Is found by its path only."""


Ten, Half = scaling(10), scaling(0.5)


class MakeEnv:
    """A function that makes one environment, for worker processes as well."""

    def __init__(self, script: Script, row: int, copying: bool = False) -> None:
        self.script, self.row, self.copying = script, row, copying

    def __call__(self) -> gym.Env[Any, Any]:
        env: gym.Env[Any, Any] = ScriptedEnv(self.script, self.row)
        return Copying(env) if self.copying else env


class Identity(VectorWrapper):
    """A vector wrapper that changes nothing: with it, whole batches are driven."""


BOX = spaces.Box(-1, 1, (3,), np.float32)
DISCRETE = spaces.Discrete(4)


def script(**kwargs: Any) -> Script:
    return Script(**{"observation_space": BOX, "action_space": DISCRETE, **kwargs})


def fns(n: int = 2, **kwargs: Any) -> list[MakeEnv]:
    """One function for each of n rows of a scripted environment."""
    return [MakeEnv(script(**kwargs), i) for i in range(n)]
