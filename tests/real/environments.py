"""The environments that the scripts train on: Gymnasium's and SB3's own, and the same adapted.

The scripts of this folder call the environments as the libraries' published training scripts do.
What they learn has to be the same on both, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import sb3compat
from tests.profiles import some

vec_envs: Any = pytest.importorskip("stable_baselines3.common.vec_env")
torch: Any = pytest.importorskip("torch")

# The steps of an episode: some end before, some are truncated.
LIMIT = 30

Make = Callable[[], gym.Env[Any, Any]]


def makers(env_id: str, n: int, max_episode_steps: int = LIMIT, **kwargs: Any) -> list[Make]:
    """Functions that make environments with short episodes, of which some are truncated."""

    def make() -> gym.Env[Any, Any]:
        return gym.make(env_id, max_episode_steps=max_episode_steps, **kwargs)

    return [make] * n


def vector_envs(fns: list[Make], mode: str = "SameStep") -> dict[str, Callable[[], Any]]:
    """For a script that is written for Gymnasium: `SyncVectorEnv`, and SB3's adapted."""
    makes = {
        "SyncVectorEnv": lambda: SyncVectorEnv(fns, autoreset_mode=mode),
        "DummyVecEnv": lambda: adapted(vec_envs.DummyVecEnv(fns), mode),
        "SubprocVecEnv": lambda: adapted(vec_envs.SubprocVecEnv(fns, start_method="fork"), mode),
    }
    return dict(some(list(makes.items()), 2))


def adapted(vec_env: Any, mode: str) -> Any:
    return sb3compat.to_gymnasium(vec_env, autoreset_mode=mode)


def sb3_envs(fns: list[Make]) -> dict[str, Callable[[], Any]]:
    """For a script that is written for SB3: `DummyVecEnv`, and Gymnasium's adapted."""
    return {
        "DummyVecEnv": lambda: vec_envs.DummyVecEnv(fns),
        "SyncVectorEnv": lambda: sb3compat.to_sb3(SyncVectorEnv(fns)),
        "AsyncVectorEnv": lambda: sb3compat.to_sb3(gym.vector.AsyncVectorEnv(fns)),
    }


def same_results(makes: dict[str, Callable[[], Any]], train: Callable[[Any], Any]) -> Any:
    """Train on each environment, with the same seeds; what comes of it has to be the same.

    Returns:
        The result on the first environment.
    """
    results = {}
    for name, make in makes.items():
        np.random.seed(0)
        torch.manual_seed(0)
        env = make()
        results[name] = plain(train(env))
        env.close()
    (first, expected), *others = results.items()
    for name, result in others:
        np.testing.assert_equal(result, expected, err_msg=f"{name} is not {first}")
    return expected


def plain(value: Any) -> Any:
    """Modules and tensors as arrays, all the way down."""
    if isinstance(value, torch.nn.Module):
        return plain(value.state_dict())
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().numpy()
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value
