"""Sub-environments in workers are reached as those of `DummyVecEnv`, and only those named."""

from __future__ import annotations

import os
import signal
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

import sb3compat
from sb3compat import ParallelVecEnv
from tests.envs import Copying, WorkerReport, fns
from tests.parallel.teams import KINDS, forked, parts_of
from tests.to_sb3.test_faults import Failing

INDICES: list[Any] = [None, 0, -1, [3, 1], (4, 0, 4), range(1, 5, 2), []]


@pytest.fixture(scope="module", params=["single", *KINDS])
def env(request: pytest.FixtureRequest) -> Any:
    if request.param in ("dummy", "nested"):
        pytest.importorskip("stable_baselines3")
    made = forked(parts_of(fns(5), [("single", 1), (request.param, 3), ("single", 1)]), 2)
    yield made
    made.close()


@pytest.mark.parametrize("indices", INDICES, ids=str)
def test_access_by_index_equals_dummy_vec_env(env: Any, indices: Any) -> None:
    dummy_vec_env = pytest.importorskip("stable_baselines3.common.vec_env").DummyVecEnv
    reference = dummy_vec_env(fns(5))
    assert env.get_attr("row", indices) == reference.get_attr("row", indices)
    for value, row in ((2.5, 0), ([1, 2], 3)):
        env.set_attr("mu", value, indices)
        reference.set_attr("mu", value, indices)
        assert env.get_attr("mu") == reference.get_attr("mu")
        assert env.env_method("set_mu", mu=row, indices=indices) == reference.env_method(
            "set_mu", mu=row, indices=indices
        )
        assert env.get_attr("mu") == reference.get_attr("mu")
    assert env.env_is_wrapped(TimeLimit, indices) == reference.env_is_wrapped(TimeLimit, indices)
    env.set_attr("mu", 0.5)


def test_missing_attributes_and_indices_are_errors(env: Any) -> None:
    assert env.has_attr("mu")
    assert not env.has_attr("nothing")
    with pytest.raises(AttributeError):
        env.get_attr("nothing")
    with pytest.raises(IndexError):
        env.get_attr("mu", 5)
    assert env.get_attr("row", np.int64(-2)) == [3]
    assert env.get_attr("row") == list(range(5))


def test_images_are_those_of_the_rows(env: Any) -> None:
    assert [image[0, 0, 0] for image in env.get_images()] == list(range(5))


def test_wrappers_are_found_by_name_without_importing_their_module() -> None:
    env = ParallelVecEnv([lambda i=i: WorkerReport(Copying(fns(3)[i]())) for i in range(3)])
    assert env.env_is_wrapped(Copying) == [True] * 3
    monitor = pytest.importorskip("stable_baselines3.common.monitor").Monitor
    assert env.env_is_wrapped(monitor, [1, 2]) == [False] * 2
    assert env.env_method("loaded", "torch") == [False] * 3
    assert env.env_method("loaded", "stable_baselines3") == [False] * 3
    env.close()


def test_only_the_workers_concerned_are_asked() -> None:
    env = forked([lambda i=i: Failing(i, "") for i in range(4)], 2)
    os.kill(env.env_method("pid", indices=3)[0], signal.SIGKILL)
    assert env.get_attr("row", [0, 1]) == [0, 1]
    env.set_attr("mu", 3, 0)
    with pytest.raises(sb3compat.WorkerError, match="rows 2 to 3"):
        env.get_attr("row", 2)
    env.close()


def test_value_of_a_class_without_an_importable_name_arrives() -> None:
    class Local:
        number = 7

    class Holder(gym.Wrapper[Any, Any, Any, Any]):
        def number(self) -> int:
            return int(self.held.number)

    env = ParallelVecEnv([lambda: Holder(fns(1)[0]())])
    env.set_attr("held", Local())
    assert env.env_method("number") == [7]
    assert type(env.get_attr("held")[0]) is Local
    env.close()
