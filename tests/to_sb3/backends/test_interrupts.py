"""Interrupted calls of other libraries' environments: no later call gets their results.

Where a step is sent to threads and then received, results may still come, and the environment is
refused. Everywhere else, a reset leads out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import sb3compat
from sb3compat.errors import CallOrderError
from tests.envs import Identity
from tests.interrupts import attempt, count, interrupt, points, within
from tests.lockstep import same
from tests.to_sb3.backends.libraries import atari, closed_later, jax_env, pool

# EnvPool imports JAX as well.
pytestmark = pytest.mark.jax

KINDS: dict[str, Callable[[], Any]] = {
    "CartPole": lambda: closed_later(
        gym.make_vec("CartPole-v1", num_envs=2, vectorization_mode="vector_entry_point")
    ),
    "JAX": lambda: jax_env("CartPole-v1", 2, 4),
    "EnvPool": lambda: pool(2, limit=4),
    "ale-py": lambda: atari(AutoresetMode.NEXT_STEP, 2),
    "ale-py same step": lambda: atari(AutoresetMode.SAME_STEP, 2),
}
# Their steps are sent to threads.
SENDING = ("EnvPool", "ale-py", "ale-py same step")
# In which each row's numbers come from the seed of the reset.
SEEDED = ("CartPole", "JAX", "ale-py", "ale-py same step")

OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "reset": lambda env: env.reset(),
    "step": lambda env: step(env),
}


def step(env: Any) -> Any:
    return env.step(np.ones(2, env.action_space.dtype))


def started(kind: str) -> Any:
    env: Any = sb3compat.to_sb3(KINDS[kind]())
    if kind in SEEDED:
        env.seed(3)
    env.reset()
    for _ in range(3):
        step(env)
    return env


def assert_helps(error: Exception | None, where: str) -> None:
    ways = ["Close this environment"]
    if isinstance(error, CallOrderError):
        ways.append("reset()")
    assert error is None or any(way in str(error) for way in ways), f"{where}: {error}"


def is_new_episode(kind: str, env: Any, obs: Any) -> None:
    """Whether these rows start from what was returned, and go on from it."""
    if kind == "EnvPool":
        # By its equations: the next position is that of this observation, and of no older one.
        assert np.abs(obs).max() <= 0.05
        for _ in range(3):
            after, _, dones, infos = step(env)
            for row in range(2):
                last = infos[row]["terminal_observation"] if dones[row] else after[row]
                moved = last[0] - obs[row][0] - 0.02 * obs[row][1]
                assert abs(moved) < 1e-5, (row, moved)
            obs = after


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_interrupted_operation(name: str, kind: str) -> None:
    operation = OPERATIONS[name]
    env = started(kind)
    total = count(lambda: operation(env))
    fresh: list[Any] = []
    if kind in SEEDED:
        reference = started(kind)
        reference.seed(7)
        fresh = [reference.reset(), *(step(reference) for _ in range(4))]
    ways = {"refused": 0, "reset": 0, "went on": 0}
    for at, error in points(total, 60):
        env = started(kind)
        where = f"{name} of {kind}, {error.__name__} at point {at} of {total}"
        with within(120):
            raised = interrupt(lambda env=env: operation(env), at, error)
        refused = attempt(lambda env=env: step(env), CallOrderError, sb3compat.WorkerError)[1]
        assert_helps(refused, where)
        ways["went on"] += refused is None
        if kind in SEEDED:
            env.seed(7)
        obs, refused = attempt(env.reset, sb3compat.WorkerError)
        assert_helps(refused, where)
        ways["refused" if refused else "reset"] += 1
        if refused is None:
            is_new_episode(kind, env, obs)
            for number, wanted in enumerate(fresh):
                got = step(env) if number else obs
                same(got, wanted, f"{where}, step {number}: {raised}")
        env.close()
    assert kind in SENDING or not ways["refused"], ways
    assert ways["reset"], ways


@pytest.mark.parametrize("kind", SENDING)
def test_refusal_holds_for_every_adapter_of_the_environment(kind: str) -> None:
    source = KINDS[kind]()
    env: Any = sb3compat.to_sb3(source)
    env.reset()
    send = source.send

    def interrupted(*args: Any) -> None:
        send(*args)
        raise KeyboardInterrupt

    env._source._base.env.__dict__["send"] = interrupted
    with pytest.raises(KeyboardInterrupt):
        step(env)
    del source.__dict__["send"]
    for adapter in (env, sb3compat.to_sb3(source), sb3compat.to_sb3(Identity(source))):
        for use in (adapter.reset, lambda adapter=adapter: step(adapter)):
            with pytest.raises(sb3compat.WorkerError, match="results may still come"):
                use()


@pytest.mark.parametrize("kind", SENDING)
def test_first_step_needs_a_reset_of_the_adapter(kind: str) -> None:
    env: Any = sb3compat.to_sb3(KINDS[kind]())
    with pytest.raises(CallOrderError, match=r"Expected reset\(\) before the first step"):
        step(env)
    env.reset()
    step(env)
