"""Gymnasium's JAX environments. See test_transitions.py as well."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import sb3compat
from tests.envs import GYMNASIUM
from tests.lockstep import same
from tests.to_sb3.backends.cartpole import TOLERANCE, Array, run
from tests.to_sb3.backends.libraries import jax_env

pytestmark = pytest.mark.jax


def jax_cartpole(num_envs: int, limit: int = 500, seed: int = 1) -> Any:
    env = sb3compat.to_sb3(jax_env("CartPole-v1", num_envs, limit))
    env.seed(seed)
    return env


@pytest.fixture(scope="module")
def jax_stream() -> list[Any]:
    return run(jax_cartpole(2, 6, seed=5), 15)


def after_one_swing(obs: Array, torques: Array) -> Array:
    """The pendulum's equations of motion, one step."""
    angle = np.arctan2(obs[:, 1], obs[:, 0]).astype(np.float64)
    speed = obs[:, 2] + (15 * np.sin(angle) + 3 * np.clip(torques[:, 0], -2, 2)) * 0.05
    speed = np.clip(speed, -8, 8)
    angle = angle + 0.05 * speed
    return np.stack([np.cos(angle), np.sin(angle), speed], axis=1)


@pytest.mark.filterwarnings("ignore:.*missing AutoresetMode metadata")
def test_jax_pendulum_needs_its_mode_as_an_argument() -> None:
    """With the mode as an argument, the truncated episodes of a continuous task are right."""
    n, limit = 3, 5
    source = jax_env("Pendulum-v0", n, limit)
    with pytest.raises(sb3compat.AutoresetModeError, match="autoreset_mode='NextStep'"):
        sb3compat.to_sb3(source)
    env = sb3compat.to_sb3(source, autoreset_mode="NextStep")
    env.seed(2)
    rng = np.random.default_rng(0)
    obs: Any = env.reset()
    for step in range(1, 18):
        previous, torques = obs, rng.uniform(-2, 2, (n, 1)).astype(np.float32)
        obs, rewards, dones, infos = env.step(torques)
        assert (type(obs), obs.dtype, rewards.dtype) == (np.ndarray, np.float32, np.float32)
        assert np.all(rewards < 0)
        assert dones.tolist() == [step % limit == 0] * n
        assert [info["TimeLimit.truncated"] for info in infos] == dones.tolist()
        reached = np.stack(
            [info.get("terminal_observation", obs[i]) for i, info in enumerate(infos)]
        )
        np.testing.assert_allclose(reached, after_one_swing(previous, torques), atol=TOLERANCE)
        assert dones.any() != np.array_equal(reached, obs)
        if dones.any():
            assert np.all(np.abs(obs[:, 2]) <= 1)


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
