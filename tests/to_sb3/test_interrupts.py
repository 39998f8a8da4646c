"""An exception at any point of an operation: no later call gets the answer to an earlier one."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import sb3compat
from sb3compat.errors import CallOrderError
from tests.envs import Identity
from tests.interrupts import count, counting, interrupt, points
from tests.lockstep import same

CLEAR = (CallOrderError, sb3compat.WorkerError, sb3compat.ClosedError)
NEXT_STEP = AutoresetMode.NEXT_STEP


class OwnSteps(AsyncVectorEnv):
    """A subclass whose own `step` and `reset` are called, which speak to the workers."""

    def step(self, actions: Any) -> Any:
        return super().step(actions)

    def reset(self, **kwargs: Any) -> Any:
        return super().reset(**kwargs)


KINDS: dict[str, Callable[[], Any]] = {
    "sync": lambda: SyncVectorEnv(counting()),
    "sync wrapped": lambda: Identity(SyncVectorEnv(counting())),
    "async": lambda: AsyncVectorEnv(counting()),
    "async unshared": lambda: AsyncVectorEnv(counting(), shared_memory=False),
    "async wrapped": lambda: Identity(AsyncVectorEnv(counting())),
    "async same step": lambda: AsyncVectorEnv(
        counting(), autoreset_mode=AutoresetMode.SAME_STEP
    ),
    "async subclass": lambda: OwnSteps(counting()),
}

ACTIONS = np.zeros(2, np.int64)
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "reset": lambda env: env.reset(),
    "step": lambda env: env.step(ACTIONS + 1),
    "get_attr": lambda env: env.get_attr("row"),
    "set_attr": lambda env: env.set_attr("mark", 5),
    "env_method": lambda env: env.env_method("add", 10),
    "env_is_wrapped": lambda env: env.env_is_wrapped(Identity),
    "get_images": lambda env: env.get_images(),
}
READS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "get_attr": (lambda env: env.get_attr("row"), [0, 1]),
    "env_method": (lambda env: env.env_method("add", 3), [3, 4]),
    "env_is_wrapped": (lambda env: env.env_is_wrapped(Identity), [False, False]),
    "get_images": (lambda env: [int(frame[0, 0, 0]) for frame in env.get_images()], [0, 1]),
}


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    def fail(*_: Any) -> None:
        raise AssertionError("a call hangs")

    before = signal.signal(signal.SIGALRM, fail)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def transcript(env: Any, steps: int, seed: int = 7) -> list[Any]:
    """The results of a reset with a seed and of some steps, with the infos of the resets."""
    env.seed(seed)
    results: list[Any] = [(env.reset(), list(env.reset_infos))]
    results += [(env.step(ACTIONS), list(env.reset_infos)) for _ in range(steps)]
    return results


def processes_of(env: Any) -> list[Any]:
    return list(getattr(env.env.unwrapped, "processes", ()))


def started(kind: str) -> Any:
    """An environment in whose next step an episode ends."""
    env: Any = sb3compat.to_sb3(KINDS[kind]())
    env.seed(3)
    env.reset()
    env.step(ACTIONS)
    return env


def check(env: Any, expected: list[Any], where: str) -> bool:
    """Whether the environment goes on as if nothing, or all, of the operation had been done.

    Each call raises an error that says what to call, or its result is right; and a reset leads
    out, or says that the environment must be closed.
    """
    signal.alarm(60)
    for name, (read, value) in READS.items():
        try:
            got = read(env)
        except CLEAR as error:
            assert_helps(error, where)
        else:
            assert got == value, f"{where}: {name} returned {got}"
    went_on = False
    try:
        got = env.step(ACTIONS), list(env.reset_infos)
    except CLEAR as error:
        assert_helps(error, where)
    else:
        went_on = True
        assert any(is_same(got, each) for each in expected), f"{where}: step returned {got}"
    env.seed(7)
    try:
        obs = env.reset()
    except sb3compat.WorkerError as error:
        assert "Close this environment" in str(error), where
    else:
        fresh = expected_transcript()
        same((obs, list(env.reset_infos)), fresh[0], where)
        for number, wanted in enumerate(fresh[1:]):
            same((env.step(ACTIONS), list(env.reset_infos)), wanted, f"{where}, {number}")
    close(env, where)
    return went_on


def close(env: Any, where: str) -> None:
    env.close()
    env.close()
    assert not any(process.is_alive() for process in processes_of(env)), where
    signal.alarm(0)


def is_same(got: Any, expected: Any) -> bool:
    try:
        same(got, expected)
    except AssertionError:
        return False
    return True


def assert_helps(error: Exception, where: str) -> None:
    helps = any(way in str(error) for way in ("reset()", "Close this environment", "was closed"))
    assert helps, f"{where}: {error}"


_cache: list[Any] = []


def expected_transcript() -> list[Any]:
    if not _cache:
        env = sb3compat.to_sb3(SyncVectorEnv(counting()))
        _cache.append(transcript(env, 5))
    return list(_cache[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_interrupted_operation(name: str, kind: str) -> None:
    operation = OPERATIONS[name]
    env = started(kind)
    total = count(lambda: operation(env))
    close(env, "counting")
    env = started("sync")
    after = [(env.step(ACTIONS), list(env.reset_infos)) for _ in range(2)]
    # After a step, the next may be the one that follows, but only if the step was done entirely.
    expected = {"reset": [], "step": after[:1]}.get(name, after[:1])
    for at, error in points(total):
        env = started(kind)
        where = f"{name} of {kind}, {error.__name__} at point {at} of {total}"
        signal.alarm(60)
        raised = interrupt(lambda env=env: operation(env), at, error)
        check(env, expected if total - at > 60 else [*expected, *after], f"{where}: {raised}")
