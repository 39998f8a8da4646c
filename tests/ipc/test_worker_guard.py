"""What is read from the local variables of a worker's loop, and workers that lack them."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import sb3compat
from sb3compat._ipc import worker_guard
from sb3compat.errors import UpstreamError
from tests.envs import ScriptedEnv, script

GYM = rf"gymnasium {gym.__version__}".replace(".", r"\.")


def make(length: int = 2) -> Any:
    return ScriptedEnv(script(lengths=(length,), infos="none"))


def answer(pipe: Any, env: Any, command: str, data: Any) -> None:
    """What Gymnasium's worker does at the commands that neither reset nor step."""
    if command == "_call":
        name, args, kwargs = data
        value = env.get_wrapper_attr(name)
        pipe.send((value(*args, **kwargs) if callable(value) else value, True))
    elif command == "_check_spaces":
        pipe.send(((True, True), True))
    else:
        pipe.send((None, True))


def worker_without_a_flag(
    index: int, env_fn: Any, pipe: Any, parent: Any, shared: Any, errors: Any, *rest: Any
) -> None:
    """One that has no flag `autoreset`."""
    env, command = env_fn(), ""
    parent.close()
    try:
        while command != "close":
            command, data = pipe.recv()
            answer(pipe, env, command, data) if command else None
    except Exception as error:
        errors.put((index, type(error), str(error), "no trace"))
        pipe.send((None, False))


def test_worker_without_the_flag_of_its_autoreset() -> None:
    env = AsyncVectorEnv(
        [make] * 2,
        shared_memory=False,
        autoreset_mode=AutoresetMode.NEXT_STEP,
        worker=worker_without_a_flag,
    )
    vec_env = sb3compat.to_sb3(env)
    # Taken for False, the flag would let the worker reset twice after the first episode.
    with pytest.raises(UpstreamError, match=rf"'autoreset' in the custom worker.*{GYM}"):
        vec_env.reset()
    env.close(terminate=True)


def test_frames_of_the_parent_are_not_those_of_its_forked_worker() -> None:
    env: Any = gym.wrappers.TimeLimit(make(), 5)  # in a frame that the worker inherits
    envs = AsyncVectorEnv([make], context="fork", worker=worker_without_a_flag)
    vec_env = sb3compat.to_sb3(RecordEpisodeStatistics(envs), autoreset_mode=None)
    # The worker's own environment is the argument `env` of `answer`.
    assert vec_env.env_is_wrapped(gym.wrappers.TimeLimit) == [False]
    envs.close(terminate=True)
    env.close()


def test_questions_outside_of_a_worker() -> None:
    env = make()
    with pytest.raises(UpstreamError, match=r"in a worker process.*sb3compat versions"):
        worker_guard.env_of_worker()
    env.close()
