"""Steps of other libraries that `step_async` really starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import sb3compat
from sb3compat._to_sb3.partial_reset import partial_reset_of
from tests.envs import Identity
from tests.to_sb3.backends.libraries import atari, pool

# EnvPool imports JAX as well.
pytestmark = pytest.mark.jax

SPLIT: dict[str, Callable[[], Any]] = {
    "AtariVectorEnv": lambda: atari(AutoresetMode.NEXT_STEP, 2),
    "EnvPool": lambda: pool(2),
}


def starts(source: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The actions of every step that was started."""
    log: list[Any] = []

    class Logged(type(source)):  # type: ignore[misc]
        def send(self, actions: Any, *args: Any) -> Any:
            log.append(actions)
            return super().send(actions, *args)

    known = partial_reset_of(source)
    assert known is not None
    # It overrides `send`, so that the function known for its base class does not hold.
    sb3compat.register_partial_reset(Logged, known)
    monkeypatch.setattr(source, "__class__", Logged)
    return log


@pytest.mark.parametrize("name", SPLIT)
def test_step_async_starts_the_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = SPLIT[name]()
    log = starts(source, monkeypatch)
    env = sb3compat.to_sb3(source)
    env.reset()
    actions = np.zeros(2, np.int64)
    env.step_async(actions)
    assert len(log) == 1
    env.step_wait()
    assert len(log) == 1
    env.step_async(actions)
    env.reset()  # drops that step
    obs, _, dones, _ = env.step(actions)
    assert len(log) == 3
    assert not dones.any()
    env.step_async(actions)
    np.testing.assert_array_equal(env.step_wait()[0].shape, obs.shape)
    env.step_async(actions)
    env.close()


@pytest.mark.parametrize("name", SPLIT)
def test_step_through_a_wrapper_starts_in_step_wait(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SPLIT[name]()
    log = starts(source, monkeypatch)
    env = sb3compat.to_sb3(Identity(source))
    env.reset()
    env.step_async(np.zeros(2, np.int64))
    assert not log
    env.step_wait()
    assert len(log) == 1


def test_step_of_the_instance_itself_is_called() -> None:
    source = atari(AutoresetMode.SAME_STEP, 2)
    step, calls = source.step, []

    def counted(actions: Any) -> Any:
        calls.append(actions)
        return step(actions)

    source.step = counted
    env = sb3compat.to_sb3(source)
    env.reset()
    for _ in range(2):
        env.step(np.zeros(2, np.int64))
    assert len(calls) == 2
