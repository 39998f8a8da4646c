"""An exception at any point of an operation: no later call gets the answer to an earlier one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import sb3compat
from sb3compat.errors import CallOrderError
from tests.envs import Identity
from tests.interrupts import attempt, count, counting, interrupt, points, within
from tests.lockstep import same

CLEAR = (CallOrderError, sb3compat.WorkerError, sb3compat.ClosedError)
NEXT_STEP = AutoresetMode.NEXT_STEP


class OwnSteps(AsyncVectorEnv):
    """A subclass whose own `step` and `reset` are called, which speak to the workers."""

    def step(self, actions: Any) -> Any:
        return super().step(actions)

    def reset(self, **kwargs: Any) -> Any:
        return super().reset(**kwargs)


sb3compat.register_partial_reset(OwnSteps, sb3compat.reset_with_mask)

KINDS: dict[str, Callable[[], Any]] = {
    "sync": lambda: SyncVectorEnv(counting()),
    "sync wrapped": lambda: Identity(SyncVectorEnv(counting())),
    "async": lambda: AsyncVectorEnv(counting()),
    "async unshared": lambda: AsyncVectorEnv(counting(), shared_memory=False),
    "async wrapped": lambda: Identity(AsyncVectorEnv(counting())),
    "async same step": lambda: AsyncVectorEnv(counting(), autoreset_mode=AutoresetMode.SAME_STEP),
    "async subclass": lambda: OwnSteps(counting()),
}

# The points of the lines that return what was done.
AT_THE_END = 30
ACTIONS = np.zeros(2, np.int64)
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "reset": lambda env: env.reset(),
    "step": lambda env: env.step(ACTIONS),
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


def check(env: Any, expected: list[Any], where: str) -> None:
    """Each call raises an error that says what to call, or its result is right.

    And a reset leads out, or says that the environment must be closed.
    """
    for name, (read, value) in READS.items():
        got, error = attempt(lambda read=read: read(env), *CLEAR)
        assert_helps(error, where)
        assert error or got == value, f"{where}: {name} returned {got}"
    got, error = attempt(lambda: (env.step(ACTIONS), list(env.reset_infos)), *CLEAR)
    assert_helps(error, where)
    assert error or any(is_same(got, each) for each in expected), f"{where}: step returned {got}"
    env.seed(7)
    obs, error = attempt(env.reset, sb3compat.WorkerError)
    if error:
        assert "Close this environment" in str(error), where
    else:
        fresh = expected_transcript()
        same((obs, list(env.reset_infos)), fresh[0], where)
        for number, wanted in enumerate(fresh[1:]):
            same((env.step(ACTIONS), list(env.reset_infos)), wanted, f"{where}, {number}")
    close(env, where)


def close(env: Any, where: str) -> None:
    env.close()
    env.close()
    assert not any(process.is_alive() for process in processes_of(env)), where


def is_same(got: Any, expected: Any) -> bool:
    try:
        same(got, expected)
    except AssertionError:
        return False
    return True


def assert_helps(error: Exception | None, where: str) -> None:
    ways = ("reset()", "Close this environment", "was closed")
    assert error is None or any(way in str(error) for way in ways), f"{where}: {error}"


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
    env = started("sync")
    env.reset()
    if name == "reset":
        after[1] = (env.step(ACTIONS), list(env.reset_infos))
    for at, error in points(total):
        env = started(kind)
        where = f"{name} of {kind}, {error.__name__} at point {at} of {total}"
        with within(120):
            raised = interrupt(lambda env=env: operation(env), at, error)
            # The operation is as good as done when the exception comes as it returns.
            late = name in ("reset", "step") and (raised is None or total - at < AT_THE_END)
            check(env, after if late else after[:1], f"{where}: {raised}")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "async" in kind])
@pytest.mark.parametrize("waiting", [False, True], ids=["idle", "step under way"])
def test_interrupted_close_is_finished_by_the_next(kind: str, waiting: bool) -> None:
    def made() -> Any:
        env = started(kind)
        if waiting:
            env.step_async(ACTIONS)
        return env

    env = made()
    total = count(env.close)
    for at, error in points(total, 60):
        env = made()
        with within(120):
            raised = interrupt(env.close, at, error)
            close(env, f"{error.__name__} at point {at} of {total}: {raised}")


@pytest.mark.parametrize("kind", KINDS)
def test_step_that_was_started_can_be_finished_or_dropped_after_an_interrupt(kind: str) -> None:
    """Once `step_async` is done, an exception between it and `step_wait` loses nothing."""
    env = started("sync")
    expected = env.step(ACTIONS), list(env.reset_infos)
    env = started(kind)
    env.step_async(ACTIONS)
    with pytest.raises(CallOrderError, match=r"step_wait\(\).*reset\(\)"):
        env.step(ACTIONS)
    same((env.step_wait(), list(env.reset_infos)), expected)
    env.step_async(ACTIONS)
    env.seed(7)
    same((env.reset(), list(env.reset_infos)), expected_transcript()[0])
    close(env, kind)
