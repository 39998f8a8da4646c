"""What is read from the local variables of a worker's loop, and workers that lack them."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv
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


def worker_of_other_words(
    index: int, env_fn: Any, pipe: Any, parent: Any, shared: Any, errors: Any, *rest: Any
) -> None:
    """One whose environment is not called `env`."""
    single, command = env_fn(), ""
    while command != "close":
        command, data = pipe.recv()
        if command == "reset":
            pipe.send(((None, single.reset(**data)[1]), True))
        elif command == "_call":
            pipe.send((single.has_wrapper_attr(*data[1]), True))
        else:
            pipe.send(((True, True), True))


def test_worker_of_other_words_is_refused_and_lives_on() -> None:
    env = AsyncVectorEnv([make] * 2, worker=worker_of_other_words)
    with pytest.raises(UpstreamError, match=rf"'env' in the custom worker.*{GYM}"):
        sb3compat.to_sb3(env)
    env.reset()
    env.close()


class PutsBackItsState(gym.Env[Any, Any]):
    """A reset replaces all that it has."""

    observation_space = gym.spaces.Box(0, 9, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    time = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.__dict__ = {"level": 3, "time": 0}
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.time += 1
        return np.array([self.time], np.float32), 1.0, self.time == 3, False, {}


def test_environment_may_put_back_its_state() -> None:
    env = sb3compat.to_sb3(AsyncVectorEnv([PutsBackItsState] * 2))
    for _ in range(2):
        assert env.get_attr("time") == [0, 0]
        env.reset()
        env.step(np.zeros(2, int))
        assert env.env_is_wrapped(gym.Wrapper) == [False, False]
        assert env.get_attr("level") == [3, 3]
        env.reset()
    env.close()


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
