"""CartPole's own equations, and a check of every result of an adapted CartPole against them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from tests.lockstep import same

Array = npt.NDArray[Any]
Policy = Callable[[Array], Array]
X_LIMIT, THETA_LIMIT = 2.4, 12 * 2 * np.pi / 360
RESET_BOUND = 0.05
# The equations are evaluated from observations rounded to float32; one wrong action moves the
# velocity by 0.4.
TOLERANCE = 1e-5


class Ending(NamedTuple):
    """The end of one episode."""

    row: int
    length: int
    truncated: bool
    last: Array


def after_one_step(obs: Array, actions: Array, polemass_length: float) -> Array:
    """CartPole's equations of motion, one Euler step, in float64."""
    _, x_dot, theta, theta_dot = obs.astype(np.float64).T
    force = np.where(actions == 1, 10.0, -10.0)
    sin, cos = np.sin(theta), np.cos(theta)
    push = (force + polemass_length * theta_dot**2 * sin) / 1.1
    theta_acc = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
    x_acc = push - polemass_length * theta_acc * cos / 1.1
    change = np.stack([x_dot, x_acc, theta_dot, theta_acc], axis=1)
    return obs.astype(np.float64) + 0.02 * change


def is_outside(obs: Array) -> Array:
    return (np.abs(obs[:, 0]) > X_LIMIT) | (np.abs(obs[:, 2]) > THETA_LIMIT)


def check_cartpole(
    env: Any,
    policy: Policy,
    steps: int,
    limit: int,
    *,
    polemass_length: float = 0.05,
    limit_wins: bool = False,
) -> list[Ending]:
    """Reset, step, and compare every result with the contract.

    Args:
        env: The adapted environment.
        policy: The actions, by the observations.
        steps: How many.
        limit: The environment's `max_episode_steps`.
        polemass_length: That constant of the equations.
        limit_wins: Whether an episode that ends in both ways is a truncated one.

    Returns:
        The endings seen, in order.
    """
    n = env.num_envs
    endings: list[Ending] = []
    handed_out: list[tuple[Any, Any]] = []
    obs = env.reset()
    assert (obs.dtype, obs.shape) == (np.float32, (n, 4))
    assert np.all(np.abs(obs) <= RESET_BOUND)
    lengths = np.zeros(n, int)
    for step in range(steps):
        actions = policy(obs)
        previous = obs
        obs, rewards, dones, infos = result = env.step(actions)
        handed_out.append((result, deepcopy(result)))
        lengths += 1
        assert [type(part) for part in (obs, rewards, dones)] == [np.ndarray] * 3
        assert (obs.dtype, rewards.dtype, dones.dtype) == (np.float32, np.float32, np.bool_)
        assert obs.shape == (n, 4)
        np.testing.assert_array_equal(rewards, np.ones(n), err_msg=f"rewards of step {step}")

        reached = obs.copy()
        for i in np.flatnonzero(dones).tolist():
            reached[i] = infos[i]["terminal_observation"]
        np.testing.assert_allclose(
            reached,
            after_one_step(previous, actions, polemass_length),
            atol=TOLERANCE,
            err_msg=f"what step {step} led to",
        )
        outside = is_outside(reached)
        np.testing.assert_array_equal(dones, outside | (lengths == limit))
        for i in range(n):
            info, done = infos[i], bool(dones[i])
            assert ("terminal_observation" in info) == done
            truncated = done and (lengths[i] == limit if limit_wins else not outside[i])
            assert info["TimeLimit.truncated"] is bool(truncated)
            if done:
                last = info["terminal_observation"]
                assert (type(last), last.dtype, last.shape) == (np.ndarray, np.float32, (4,))
                assert not np.shares_memory(last, obs)
                assert np.all(np.abs(obs[i]) <= RESET_BOUND), f"no reset state: {obs[i]}"
                endings.append(Ending(i, int(lengths[i]), info["TimeLimit.truncated"], last))
        lengths[dones] = 0
    for value, snapshot in handed_out:
        same(value, snapshot, "handed out earlier, and changed since")
    # First states of different episodes are different draws.
    first = [value[0][ended] for value, _ in handed_out for ended in np.flatnonzero(value[2])]
    assert len({tuple(state) for state in first}) == len(first)
    return endings


def at_random(num_envs: int, seed: int = 0) -> Policy:
    rng = np.random.default_rng(seed)
    return lambda obs: rng.integers(0, 2, num_envs)


def always(action: int) -> Policy:
    return lambda obs: np.full(len(obs), action)


def native(num_envs: int, limit: int = 500) -> Any:
    return gym.make_vec("CartPole-v1", num_envs=num_envs, max_episode_steps=limit)


def run(env: Any, steps: int, *, scribble: bool = False) -> list[Any]:
    """Copies of all results of a reset and some steps."""
    rng = np.random.default_rng(4)
    obs = env.reset()
    stream = [deepcopy((obs, env.reset_infos))]
    for _ in range(steps):
        result = env.step(rng.integers(0, 2, env.num_envs))
        stream.append(deepcopy((result, env.reset_infos)))
        if scribble:
            for array in result[:3]:
                array[...] = 1
            for info in result[3]:
                if "terminal_observation" in info:
                    info["terminal_observation"][...] = 9
                info.clear()
    return stream


def within(obs: Array, low: float, high: float) -> bool:
    return bool(np.all((obs >= low) & (obs <= high)))
