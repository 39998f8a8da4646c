"""Gymnasium's JAX environments. See test_transitions.py as well."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

import sb3compat
from tests.envs import GYMNASIUM
from tests.lockstep import same
from tests.to_sb3.backends.cartpole import run
from tests.to_sb3.backends.libraries import jax_env

pytestmark = pytest.mark.jax


def jax_cartpole(num_envs: int, limit: int = 500, seed: int = 1) -> Any:
    env = sb3compat.to_sb3(jax_env("CartPole-v1", num_envs, limit))
    env.seed(seed)
    return env


@pytest.fixture(scope="module")
def jax_stream() -> list[Any]:
    return run(jax_cartpole(2, 6, seed=5), 15)


@pytest.mark.skipif(
    GYMNASIUM < (1, 2), reason="before Gymnasium 1.2, the wrapper does not take NumPy actions"
)
@pytest.mark.parametrize("name", ["JaxToNumpy", "JaxToTorch"])
def test_jax_wrappers_change_nothing_in_the_stream(name: str, jax_stream: list[Any]) -> None:
    pytest.importorskip("torch", reason="converts to torch")
    source = jax_env("CartPole-v1", 2, 6)
    pytest.importorskip("array_api_compat", reason="Gymnasium converts with array-api-compat")
    env = sb3compat.to_sb3(getattr(gym.wrappers.vector, name)(source))
    env.seed(5)
    same(run(env, 15), jax_stream, "the stream")
