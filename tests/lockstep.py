"""Drive `DummyVecEnv` and an adapted environment through the same program; compare everything."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import VectorEnv

import sb3compat
from tests.envs import MakeEnv, Script

Operation = tuple[str, Any]
Build = Callable[[list[MakeEnv]], VectorEnv[Any, Any, Any]]


def same(ours: Any, reference: Any, where: str = "value") -> None:
    """Equal in type, dtype, shape, keys and value, all the way down."""
    if isinstance(reference, dict):
        assert isinstance(ours, dict), f"{where}: {type(ours)}"
        assert ours.keys() == reference.keys(), f"{where}: {ours.keys() ^ reference.keys()}"
        for key in reference:
            same(ours[key], reference[key], f"{where}[{key!r}]")
        return
    # An element of a batch is a scalar where the sub-environment has a 0-d array.
    ours, reference = (v[()] if isinstance(v, np.ndarray) else v for v in (ours, reference))
    assert type(ours) is type(reference), f"{where}: {ours!r} should be {reference!r}"
    if isinstance(reference, np.ndarray) and reference.dtype == object:
        assert ours.dtype == object, f"{where}: {ours.dtype}"
        assert ours.shape == reference.shape, f"{where}: {ours.shape}"
        for i, (a, b) in enumerate(zip(ours.flat, reference.flat, strict=True)):
            same(a, b, f"{where}[{i}]")
        return
    if isinstance(reference, list | tuple):
        assert len(ours) == len(reference), where
        for i, (a, b) in enumerate(zip(ours, reference, strict=True)):
            same(a, b, f"{where}[{i}]")
    elif isinstance(reference, np.ndarray | np.generic):
        assert ours.dtype == reference.dtype, f"{where}: {ours.dtype} is not {reference.dtype}"
        np.testing.assert_array_equal(ours, reference, err_msg=where)
    else:
        assert ours == reference, f"{where}: {ours!r} should be {reference!r}"


def mapped(space: spaces.Space[Any], leaf: Callable[..., Any], *values: Any) -> Any:
    """What `leaf` makes of a space that has no parts, and of values of it; for each such part."""
    if isinstance(space, spaces.Dict):
        return {
            key: mapped(part, leaf, *(value[key] for value in values))
            for key, part in space.spaces.items()
        }
    if isinstance(space, spaces.Tuple):
        parts = zip(space.spaces, *values, strict=True)
        return tuple(mapped(part, leaf, *inner) for part, *inner in parts)
    return leaf(space, *values)


def from_zero(space: spaces.Space[Any], value: Any) -> Any:
    """An observation (or batch) of the reference, shifted to start at 0, as in SB3."""
    return mapped(space, lambda part, own: own - part.start if starts(part) else own, value)


def from_start(space: spaces.Space[Any], action: Any) -> Any:
    """The inverse of `from_zero`, for one action."""
    return mapped(space, lambda part, own: own + part.start if starts(part) else own, action)


def starts(space: Any) -> bool:
    """Whether a space starts at another number than 0."""
    return bool(np.any(getattr(space, "start", 0)))


def batched(space: spaces.Space[Any], actions: list[Any]) -> Any:
    """Single actions as the batch that an algorithm would pass."""
    return mapped(space, lambda _, *own: np.stack(own), *actions)


def rows_of(space: spaces.Space[Any], batch: Any, n: int) -> list[Any]:
    """The inverse of `batched`, for n rows."""
    return [mapped(space, lambda _, own, row=row: own[row], batch) for row in range(n)]


def timeless(infos: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Episode statistics without the time that the episode took, and as plain numbers."""
    for info in infos:
        for key, value in info.items():
            if isinstance(value, dict) and value.keys() == {"r", "l", "t"}:
                info[key] = {"r": float(value["r"]), "l": int(value["l"])}
    return infos


def lockstep(
    script: Script,
    num_envs: int,
    build: Build,
    program: Iterable[Operation],
    *,
    wrap: Callable[[gym.Env[Any, Any]], gym.Env[Any, Any]] = lambda env: env,
    refer: Callable[[list[MakeEnv]], Any] | None = None,
    **kwargs: Any,
) -> None:
    """Run the program on both; raise at the first difference.

    `wrap` goes around each sub-environment of the reference, and `refer` makes another one.
    """
    vec_envs = pytest.importorskip("stable_baselines3.common.vec_env", reason="is the yardstick")
    makers = [MakeEnv(script, i, copying=True) for i in range(num_envs)]
    reference = (refer or vec_envs.DummyVecEnv)([lambda make=make: wrap(make()) for make in makers])  # type: ignore[arg-type, misc]
    source = build([MakeEnv(script, i) for i in range(num_envs)])
    try:
        ours = sb3compat.to_sb3(source, **kwargs)
        _run(script, num_envs, reference, ours, program)
    finally:
        source.close()


def _run(script: Script, n: int, reference: Any, ours: Any, program: Iterable[Operation]) -> None:
    obs_space, action_space = reference.observation_space, deepcopy(ours.action_space)
    handed_out: list[tuple[Any, Any]] = []

    def keep(value: Any) -> None:
        handed_out.append((value, deepcopy(value)))

    for number, (name, argument) in enumerate(program):
        where = f"operation {number} ({name})"
        if name == "reset":
            expected = from_zero(obs_space, reference.reset())
            got = ours.reset()
            same(got, expected, f"{where}: obs")
            same(ours.reset_infos, reference.reset_infos, f"{where}: reset_infos")
            keep(got)
            keep(list(ours.reset_infos))
        elif name == "step":
            action_space.seed(argument)
            actions = [action_space.sample() for _ in range(n)]
            obs, rewards, dones, infos = reference.step(
                [from_start(script.action_space, action) for action in actions]
            )
            for info, done in zip(infos, dones, strict=True):
                if done:
                    key = "terminal_observation"
                    info[key] = from_zero(obs_space, info[key])
            passed = actions if argument % 2 else batched(action_space, actions)
            before = deepcopy(passed)
            result = ours.step(passed)
            same(passed, before, f"{where}: the actions passed")
            expected = (from_zero(obs_space, obs), rewards, dones, timeless(infos))
            timeless(result[3])
            same(result, expected, where)
            same(ours.reset_infos, reference.reset_infos, f"{where}: reset_infos")
            keep(result)
            keep(list(ours.reset_infos))
        elif name == "seed":
            np.random.seed(7)
            expected = reference.seed(argument)
            np.random.seed(7)
            same(ours.seed(argument), expected, where)
        else:
            assert name == "options"
            options = deepcopy(argument)
            reference.set_options(argument)
            ours.set_options(options)
            for row in options if isinstance(options, list) else [options]:
                if row:  # what the caller does with them afterwards has no effect
                    row["x"] = "changed"
    for value, snapshot in handed_out:
        same(value, snapshot, "handed out earlier, and changed since")
