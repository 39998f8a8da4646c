"""Worker processes as a team: exchanges, restarts, ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv

import sb3compat
from sb3compat._parallel import processes
from tests.interrupts import no_hang
from tests.parallel.known import Known
from tests.parallel.teams import children, forked
from tests.resources import held


def test_closed_environment_holds_no_descriptors_but_that_of_its_memory() -> None:
    envs, descriptors = [], []
    for _ in range(2):  # the first one may start helpers of Python's own
        envs.append(forked([lambda: Known(0)] * 2, workers=2))
        envs[-1].close()
        descriptors.append(held(alone=True).descriptors)
    # Arrays that were handed out may be views of the memory.
    assert descriptors[1] - descriptors[0] == 1


def test_hanging_close_is_ended_after_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(Known):
        def close(self) -> None:
            threading.Event().wait()

    monkeypatch.setattr(processes, "_END_SECONDS", 0.1)
    env = forked([lambda: Hanging(0)], timeout=0.2)
    with pytest.warns(UserWarning, match=r"environments of row 0 have not closed within timeout=0"):
        env.close()
    assert not children()


class Forks(gym.Env[Any, Any]):
    """Forks its process in its second step; the copy exits, returns as a worker does, or stays."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (1,))
    action_space = gym.spaces.Discrete(2)
    time, child = 0, -1

    def __init__(self, copy: str) -> None:
        self.copy = copy

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.time += 1
        if action:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.time == 2:
            self.child = os.fork()
            self.go_on()
        return np.full(1, self.time, np.float32), 1.0, False, False, {"child": self.child}

    def go_on(self) -> None:
        if self.child and self.copy != "stays":
            expected = {"exits": 2, "returns": 0}[self.copy]
            assert os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1]) == expected
        if not self.child and self.copy == "exits":
            sys.exit(2)
        while not self.child and self.copy == "stays":
            signal.pause()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no os.fork")
@pytest.mark.parametrize("start_method", [None, "fork"])
@pytest.mark.parametrize("copy", ["exits", "returns"])
def test_copy_of_a_worker_that_an_environment_forks_answers_nothing(
    copy: str, start_method: Any
) -> None:
    made = [partial(Forks, copy)] * 2
    env = sb3compat.ParallelVecEnv(made, workers=2, start_method=start_method)
    env.reset()
    with no_hang():
        seen = [env.step([0, 0])[0].ravel().tolist() for _ in range(4)]
    assert seen == [[1, 1], [2, 2], [3, 3], [4, 4]]
    env.close()


@pytest.fixture
def ended() -> Iterator[list[int]]:
    """Processes that are ended afterwards."""
    numbers: list[int] = []
    yield numbers
    for number in numbers:
        os.kill(number, signal.SIGKILL)


def in_async(fns: Any) -> Any:
    return sb3compat.to_sb3(AsyncVectorEnv(fns, context="fork"))


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the system has no pidfd_open")
@pytest.mark.parametrize("build", [forked, in_async])
def test_death_of_a_worker_is_noticed_though_a_process_of_its_environment_lives_on(
    build: Any, ended: list[int]
) -> None:
    env = build([partial(Forks, "stays")])
    env.reset()
    env.step([0])
    ended.append(env.step([0])[3][0]["child"])
    with no_hang(), pytest.raises(sb3compat.WorkerError, match="has died"):
        env.step([1])
    with no_hang():
        env.close()
