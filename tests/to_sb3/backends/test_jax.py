"""Gymnasium's JAX environments."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import sb3compat
from sb3compat._to_sb3.partial_reset import partial_reset_of
from tests.envs import GYMNASIUM
from tests.lockstep import same
from tests.to_sb3.backends.cartpole import (
    RESET_BOUND,
    TOLERANCE,
    Array,
    Policy,
    always,
    at_random,
    check_cartpole,
    check_up_to_first_ending,
    run,
    within,
)
from tests.to_sb3.backends.libraries import jax_env

pytestmark = pytest.mark.jax


def jax_cartpole(num_envs: int, limit: int = 500, seed: int = 1) -> Any:
    env = sb3compat.to_sb3(jax_env("CartPole-v1", num_envs, limit))
    env.seed(seed)
    return env


# Its authors added the mass and the length of the pole where they meant to multiply.
JAX_POLEMASS_LENGTH = 0.6


@pytest.mark.parametrize(
    ("policy", "limit", "kinds"),
    [(at_random(4), 12, {True, False}), (always(1), 8, {True, False}), (always(0), 500, {False})],
    ids=["random", "both at once", "terminated"],
)
def test_jax_cartpole_transitions_are_true(policy: Policy, limit: int, kinds: set[bool]) -> None:
    env = jax_cartpole(4, limit)
    endings = check_cartpole(env, policy, 60, limit, polemass_length=JAX_POLEMASS_LENGTH)
    assert {ending.truncated for ending in endings} == kinds
    assert {ending.row for ending in endings} == set(range(4))


def test_jax_works_after_earlier_use() -> None:
    """Its own reset leaves the autoreset of ended rows pending for the next step."""
    source = jax_env("CartPole-v1", 3, 4)
    source.reset()
    for _ in range(4):
        source.step(np.zeros(3, int))
    env = sb3compat.to_sb3(source)
    check_cartpole(env, at_random(3), 6, 4, polemass_length=JAX_POLEMASS_LENGTH)


def test_jax_equals_the_environment_up_to_the_first_ending() -> None:
    check_up_to_first_ending(jax_env("CartPole-v1", 3, 500), jax_cartpole(3, seed=8), seed=8)


@pytest.fixture(scope="module")
def jax_stream() -> list[Any]:
    return run(jax_cartpole(2, 6, seed=5), 15)


def test_jax_stream_follows_from_the_seed(jax_stream: list[Any]) -> None:
    again = run(jax_cartpole(2, 6, seed=5), 15, scribble=True)
    same(again, jax_stream, "the stream of the same seed, overwritten")
    other = jax_cartpole(2, 6, seed=6)
    assert not np.array_equal(other.reset(), jax_stream[0][0])


def test_jax_partial_reset_leaves_other_rows_alone() -> None:
    env = jax_env("CartPole-v1", 4, 3)
    env.reset(seed=0)
    for _ in range(3):
        before, _, _, truncated, _ = env.step(np.zeros(4, int))
    assert np.asarray(truncated).all()
    reset = partial_reset_of(env)
    assert reset is not None
    obs = np.asarray(reset(env, np.array([False, True, False, True]))[0])
    same(obs[[0, 2]], np.asarray(before)[[0, 2]], "the rows that were left alone")
    assert within(obs[[1, 3]], -RESET_BOUND, RESET_BOUND)
    assert np.asarray(env.steps).tolist() == [3, 0, 3, 0]
    assert np.asarray(env.prev_done).tolist() == [True, False, True, False]


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
