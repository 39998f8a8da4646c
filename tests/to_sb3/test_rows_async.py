"""A bare `AsyncVectorEnv`, driven row by row over its workers' pipes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import AlreadyPendingCallError
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

import sb3compat
from tests.envs import Returns, fns, script
from tests.lockstep import lockstep
from tests.to_sb3.driving import ASYNC, SAME_STEP, made, mode_of, step


def test_pending_call_of_the_user_is_refused() -> None:
    source = AsyncVectorEnv(fns())
    source.reset_async()
    with pytest.raises(RuntimeError, match="pending 'reset'"):
        sb3compat.to_sb3(source)
    source.reset_wait()
    env = sb3compat.to_sb3(source)
    env.reset()
    source.step_async(np.zeros(2, int))
    for use in (lambda: step(env), lambda: env.get_attr("row"), env.reset):
        with pytest.raises(RuntimeError, match="pending 'step'"):
            use()
    source.step_wait()
    env.reset()
    env.step_async(np.zeros(2, int))
    with pytest.raises(AlreadyPendingCallError):  # the environment itself knows, too
        source.step(np.zeros(2, int))
    env.close()


@mode_of
def test_wrong_shape_is_an_error_without_and_with_shared_memory(mode: AutoresetMode) -> None:
    made = [lambda: Returns(step=lambda obs, *rest: (obs[:2], *rest))]
    env = sb3compat.to_sb3(AsyncVectorEnv(made, shared_memory=False, autoreset_mode=mode))
    env.reset()
    with pytest.raises(sb3compat.ConversionError, match=r"shape \(3,\)"):
        env.step(np.zeros(1, int))
    env.reset()
    env.close()


def test_last_observation_that_looks_overwritten_warns_once() -> None:
    source = AsyncVectorEnv(fns(2, lengths=(1,), reuse=True), autoreset_mode=SAME_STEP)
    env = sb3compat.to_sb3(source)
    env.reset()
    with pytest.warns(UserWarning, match="of row 0 equals the first one of its next"):
        step(env)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(env)
    env.close()


NO_NUMBERS = {
    "box": spaces.Box(0, 1, (0,), np.float32),
    "box of many dimensions": spaces.Box(0, 1, (2, 0, 3), np.uint8),
    "dict": spaces.Dict({}),
    "tuple": spaces.Tuple(()),
    "dict of empty boxes": spaces.Dict({"a": spaces.Box(0, 1, (0,), np.float32)}),
    "tuple of empty boxes": spaces.Tuple((spaces.Box(0, 1, (0,), np.float32),)),
}
PROGRAM: list[Any] = [("reset", None), *[("step", number) for number in range(5)]]
PROGRAM += [("seed", 3), ("options", {"x": 1}), ("reset", None), ("step", 1), ("step", 2)]


@pytest.mark.filterwarnings("error:The last observation")
@pytest.mark.parametrize("name", NO_NUMBERS)
@mode_of
def test_observations_without_a_number_equal_those_of_dummy_vec_env(
    name: str, mode: AutoresetMode
) -> None:
    """Gymnasium's worker takes shared memory of no length for none: it sends the observations."""
    chosen = script(observation_space=NO_NUMBERS[name], lengths=(2, 3), infos="plain")
    for source in ASYNC:
        lockstep(chosen, 2, lambda fns, source=source: made(source, fns, mode), PROGRAM)


@pytest.mark.parametrize("name", ["box", "dict"])
def test_reset_of_rows_without_a_number_clears_their_autoreset(name: str) -> None:
    source = AsyncVectorEnv(fns(observation_space=NO_NUMBERS[name], lengths=(2,)))
    env = sb3compat.to_sb3(source)
    source.reset()
    for _ in range(2):
        source.step(np.zeros(2, int))
    env.env_method("reset", seed=1)
    env.reset()
    assert [info["shared"] for info in step(env)[3]] == [1, 1]
    env.close()
