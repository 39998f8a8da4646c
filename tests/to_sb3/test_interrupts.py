"""An exception at any point of an operation: no later call gets the answer to an earlier one.

Where other libraries send a step to threads and then receive it, results may still come, and the
environment is refused. Everywhere else, a reset leads out, unless a worker is lost.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv

import sb3compat
from tests import interrupts
from tests.closing import closed_later
from tests.envs import Identity
from tests.interrupts import counting, interrupted, no_hang
from tests.to_sb3.backends.libraries import atari, jax_env, pool
from tests.to_sb3.driving import NEXT_STEP, SAME_STEP, SOURCES, made


class OwnSteps(AsyncVectorEnv):
    """A subclass whose own `step` and `reset` are called, which speak to the workers."""

    def step(self, actions: Any) -> Any:
        return super().step(actions)

    def reset(self, **kwargs: Any) -> Any:
        return super().reset(**kwargs)


sb3compat.register_partial_reset(OwnSteps, sb3compat.reset_with_mask)

KINDS: dict[str, Callable[[], Any]] = {
    **{name: partial(made, name, counting()) for name in SOURCES},
    "async same step": lambda: made("async", counting(), SAME_STEP),
    "async subclass": lambda: OwnSteps(counting()),
}
COUNTING = tuple(KINDS)
KINDS |= {
    "CartPole": lambda: closed_later(
        gym.make_vec("CartPole-v1", num_envs=2, vectorization_mode="vector_entry_point")
    ),
    "JAX": lambda: jax_env("CartPole-v1", 2, 4),
    "ale-py": lambda: atari(NEXT_STEP, 2),
    "ale-py same step": lambda: atari(SAME_STEP, 2),
}
# Their steps are sent to threads.
SENDING = {
    "EnvPool": lambda: pool(2),
    **{kind: KINDS[kind] for kind in ("ale-py", "ale-py same step")},
}


# The reads, and what they give.
READS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "get_attr": (lambda env: env.get_attr("row"), [0, 1]),
    "env_method": (lambda env: env.env_method("add", 3), [3, 4]),
    "env_is_wrapped": (lambda env: env.env_is_wrapped(Identity), [False, False]),
    "get_images": (lambda env: [int(frame[0, 0, 0]) for frame in env.get_images()], [0, 1]),
}
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "reset": lambda env: env.reset(),
    "step": lambda env: step(env),
    "set_attr": lambda env: env.set_attr("mark", 5),
    **{name: read for name, (read, _) in READS.items()},
}


def step(env: Any) -> tuple[Any, Any]:
    """The results of a step, with the infos of the resets."""
    return env.step(np.ones(2, env.action_space.dtype)), list(env.reset_infos)


def reset(env: Any) -> tuple[Any, Any]:
    """The results of a reset with a seed."""
    env.seed(7)
    return env.reset(), list(env.reset_infos)


@cache
def transcript(kind: str) -> list[Any]:
    """A reset with a seed, and some steps."""
    env: Any = sb3compat.to_sb3(KINDS[kind]())
    results = [reset(env), *(step(env) for _ in range(5))]
    env.close()
    return results


def started(kind: str) -> Any:
    """An environment in whose next step an episode ends."""
    env: Any = sb3compat.to_sb3(KINDS[kind]())
    env.seed(3)
    env.reset()
    for _ in range(1 if kind in COUNTING else 3):
        step(env)
    return env


LIBRARIES = [kind for kind in KINDS if kind not in COUNTING]
OPERATIONS_OF = [(name, kind) for kind in COUNTING for name in OPERATIONS]
OPERATIONS_OF += [(name, kind) for kind in LIBRARIES for name in ("reset", "step")]


@pytest.mark.parametrize(
    ("name", "kind"),
    [pytest.param(*one, marks=[pytest.mark.jax] * (one[1] in LIBRARIES)) for one in OPERATIONS_OF],
)
def test_interrupted_operation(name: str, kind: str) -> None:
    env = started("sync")
    after = [step(env), step(env)]
    if name == "reset":
        env = started("sync")
        env.reset()
        after[1] = step(env)
    led_out = []
    for env, done, where in interrupted(partial(started, kind), OPERATIONS[name]):
        late = done and name in ("reset", "step")
        reads, expected = (READS, after[: 1 + late]) if kind in COUNTING else ({}, [])
        steps = transcript("sync" if kind in COUNTING else kind)
        led_out += [interrupts.check(env, (step, reset), reads, expected, steps, where)]
        interrupts.check_close(env, env.env, where)
    if kind in LIBRARIES:
        assert any(led_out)
        assert all(led_out) or kind in SENDING


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "async" in kind])
@pytest.mark.parametrize("waiting", [False, True], ids=["idle", "step under way"])
def test_interrupted_close_is_finished_by_the_next(kind: str, waiting: bool) -> None:
    def made() -> Any:
        env = started(kind)
        if waiting:
            env.step_async(np.ones(2, np.int64))
        return env

    for env, _, where in interrupted(made, lambda env: env.close()):
        interrupts.check_close(env, env.env, where)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "async" in kind])
def test_pipe_whose_interrupted_close_has_not_been_noted_is_closed(kind: str) -> None:
    env = started(kind)
    os.close(env.env.unwrapped.parent_pipes[0].fileno())
    with no_hang():
        interrupts.check_close(env, env.env, "the descriptor of a pipe is closed")


@pytest.mark.jax
@pytest.mark.parametrize("kind", SENDING)
def test_refusal_holds_for_every_adapter_of_the_environment(kind: str) -> None:
    source = SENDING[kind]()
    env: Any = sb3compat.to_sb3(source)
    env.reset()
    send = source.send

    def sent(*args: Any) -> None:
        send(*args)
        raise KeyboardInterrupt

    source.__dict__["send"] = sent
    with pytest.raises(KeyboardInterrupt):
        step(env)
    del source.__dict__["send"]
    with pytest.raises(sb3compat.WorkerError, match="results may still come"):
        step(env)
    for adapter in (env, sb3compat.to_sb3(source), sb3compat.to_sb3(Identity(source))):
        with pytest.raises(sb3compat.WorkerError, match="results may still come"):
            adapter.reset()
