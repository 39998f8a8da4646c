from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

import sb3compat
from sb3compat._rows.subenvs import resolve_indices
from tests.envs import MakeEnv, ScriptedEnv, fns, script
from tests.lockstep import same
from tests.native import NativeEnv
from tests.parallel.teams import KINDS, forked, parts_of

Monitor: Any = pytest.importorskip("stable_baselines3.common.monitor").Monitor
DummyVecEnv: Any = pytest.importorskip("stable_baselines3.common.vec_env").DummyVecEnv


def monitored(row: int) -> Any:
    return lambda: Monitor(ScriptedEnv(script(), row)) if row else ScriptedEnv(script(), row)


@pytest.fixture(params=[SyncVectorEnv, AsyncVectorEnv])
def env(request: pytest.FixtureRequest) -> Iterator[Any]:
    adapted = sb3compat.to_sb3(request.param([monitored(row) for row in range(3)]))
    yield adapted
    adapted.close()


@pytest.mark.parametrize(
    ("indices", "rows"),
    [
        (None, [0, 1, 2]),
        (1, [1]),
        (-1, [2]),
        (np.int64(2), [2]),
        (np.array(1), [1]),
        ([2, 0], [2, 0]),
        ((1, 1), [1, 1]),
        (np.array([-1, 0]), [2, 0]),
        (range(2), [0, 1]),
        ({1}, [1]),
        (iter([0, 2]), [0, 2]),
        ([], []),
    ],
)
def test_indices_are_resolved_in_order(indices: Any, rows: list[int]) -> None:
    assert resolve_indices(indices, 3) == rows


@pytest.mark.parametrize(
    ("indices", "kind"),
    [(3, IndexError), (-4, IndexError), ("a", TypeError), (0.5, TypeError)],
)
def test_indices_that_do_not_exist_are_refused(indices: Any, kind: Any) -> None:
    with pytest.raises(kind):
        resolve_indices(indices, 3)


def test_set_lands_on_the_outermost_wrapper(env: Any) -> None:
    env.set_attr("mu", [1, 2, 3], indices=[1])  # one value, although it is a list of n
    assert env.get_attr("mu") == [0.5, [1, 2, 3], 0.5]
    assert env.env_method("__repr__", indices=1)[0].startswith("<Monitor")


def test_value_that_cannot_be_pickled_leaves_the_workers_alive() -> None:
    env = sb3compat.to_sb3(AsyncVectorEnv([monitored(row) for row in range(3)]))
    for value in (lambda: 1, threading.Lock()):
        with pytest.raises((AttributeError, TypeError, pickle.PicklingError), match="pickle"):
            env.set_attr("mu", value)
        with pytest.raises((AttributeError, TypeError, pickle.PicklingError), match="pickle"):
            env.env_method("set_mu", mu=value, indices=[2])
    assert env.get_attr("mu") == [0.5, 0.5, 0.5]
    env.close()


def test_env_method_reset_works_as_in_dummy_vec_env(env: Any) -> None:
    """Some users reset rows by hand; it works as in `DummyVecEnv`."""
    reference = DummyVecEnv([monitored(row) for row in range(3)])
    for adapted in (reference, env):
        adapted.seed(3)
        adapted.reset()
    expected = reference.env_method("reset", seed=5, indices=[2, 0])
    same(env.env_method("reset", seed=5, indices=[2, 0]), expected)
    same(env.env_method("reset", indices=1), reference.env_method("reset", indices=1))
    same(env.step(np.zeros(3, int)), reference.step(np.zeros(3, int)))


def test_methods_of_all_rows_are_refused_where_there_are_no_single_ones(native: Any) -> None:
    for name in ("reset", "step", "close"):
        with pytest.raises(ValueError, match=rf"got '{name}'.*Use {name}\(\) of the vector"):
            native.env_method(name)
    native.reset()


def test_row_that_is_named_twice_is_asked_twice(env: Any) -> None:
    reference = DummyVecEnv([monitored(row) for row in range(3)])
    for adapted in (reference, env):
        adapted.reset()
    expected = reference.env_method("step", 0, indices=[1, 0, 1])
    same(env.env_method("step", 0, indices=[1, 0, 1]), expected)


def test_sub_environment_can_be_replaced_in_envs() -> None:
    class Louder(gym.RewardWrapper[Any, Any]):
        def reward(self, reward: Any) -> Any:
            return reward + 100

    env = sb3compat.to_sb3(SyncVectorEnv([monitored(0), monitored(0)]))
    env.envs[1] = Louder(env.envs[1])
    env.reset()
    rewards = env.step(np.zeros(2, int))[1]
    assert rewards[1] == rewards[0] + 100
    assert env.env_is_wrapped(Louder) == [False, True]


def test_compute_reward_takes_batches_of_any_length(native: Any) -> None:
    """HER asks the first row to compute the rewards of a batch of any length."""

    def compute_reward(achieved: Any, desired: Any, info: Any) -> Any:
        return np.asarray(achieved) - np.asarray(desired)

    native.env.compute_reward = compute_reward
    for length in (1, native.num_envs, 7):
        goals = np.arange(length)
        (rewards,) = native.env_method("compute_reward", goals, goals * 2, None, indices=[0])
        same(rewards, -goals)


def test_env_is_wrapped_answers_for_each_row(env: Any) -> None:
    assert env.env_is_wrapped(Monitor) == [False, True, True]
    assert env.env_is_wrapped(Monitor, [1, 0]) == [True, False]
    assert env.env_is_wrapped(gym.wrappers.TimeLimit) == [False, False, False]


def test_env_is_wrapped_refuses_what_is_no_class(env: Any) -> None:
    with pytest.raises(TypeError):
        env.env_is_wrapped((3, Monitor), indices=1)
    assert env.env_is_wrapped((Monitor, gym.wrappers.TimeLimit)) == [False, True, True]


def test_get_attr_within_an_async_step_is_refused() -> None:
    env = sb3compat.to_sb3(AsyncVectorEnv([monitored(0)]))
    env.reset()
    env.step_async(np.zeros(1, int))
    with pytest.raises(RuntimeError, match="step_wait"):
        env.get_attr("row")
    env.step_wait()
    assert env.get_attr("row") == [0]
    env.close()


@pytest.fixture
def native() -> Any:
    fns = [MakeEnv(script(), row) for row in range(3)]
    return sb3compat.to_sb3(NativeEnv(fns, AutoresetMode.SAME_STEP))


def test_native_environment_answers_for_all_rows(native: Any) -> None:
    assert native.get_attr("colour", [0, 2]) == ["blue", "blue"]
    assert native.env_method("paint", "red") == ["red 0", "red 1", "red 2"]
    native.set_attr("colour", "green")
    assert native.env.colour == "green"
    assert native.env_is_wrapped(Monitor) == [False, False, False]
    with pytest.raises(AttributeError, match="no sub-environments of its own"):
        native.get_attr("row")
    with pytest.raises(ValueError, match="indices=None"):
        native.set_attr("colour", "green", indices=[0])
    with pytest.raises(ValueError, match="indices=None"):
        native.env_method("paint", "red", indices=0)


def test_get_images_gives_one_image_for_each_row(native: Any, env: Any) -> None:
    images = env.get_images()
    assert [image[0, 0, 0] for image in images] == [0, 1, 2]
    assert env.render().shape == (8, 8, 3)
    with pytest.warns(UserWarning, match="render mode is None"):
        assert native.get_images() == [None, None, None]


def test_envs_and_spec_are_those_of_the_environment(native: Any) -> None:
    source = gym.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync")
    env: Any = sb3compat.to_sb3(source)
    assert env.envs == list(source.unwrapped.envs)  # type: ignore[attr-defined]
    assert env.spec.id == "CartPole-v1"
    assert not hasattr(native, "envs")
    with pytest.raises(AttributeError, match="env_method"):
        _ = native.envs


# --- every way, by index --------------------------------------------------------------------------

ADAPTED: dict[str, Any] = {"SyncVectorEnv": SyncVectorEnv, "AsyncVectorEnv": AsyncVectorEnv}
WAYS = [*ADAPTED, "single", *KINDS]
INDICES: list[Any] = [None, 0, -1, [3, 1], (4, 0, 4), range(1, 5, 2), []]


@pytest.fixture(scope="module", params=WAYS)
def mixed(request: pytest.FixtureRequest) -> Any:
    """Each way to five rows; in workers, three of them are one part."""
    made: Any
    if request.param in ADAPTED:
        made = sb3compat.to_sb3(ADAPTED[request.param](fns(5)))
    else:
        made = forked(parts_of(fns(5), [("single", 1), (request.param, 3), ("single", 1)]), 2)
    made.reset()
    yield made
    made.close()


@pytest.mark.parametrize("indices", INDICES, ids=str)
def test_access_by_index_equals_dummy_vec_env(mixed: Any, indices: Any) -> None:
    reference = DummyVecEnv(fns(5))
    assert mixed.get_attr("row", indices) == reference.get_attr("row", indices)
    for value, row in ((2.5, 0), ([1, 2], 3)):
        mixed.set_attr("mu", value, indices)
        reference.set_attr("mu", value, indices)
        assert mixed.get_attr("mu") == reference.get_attr("mu")
        assert mixed.env_method("set_mu", mu=row, indices=indices) == reference.env_method(
            "set_mu", mu=row, indices=indices
        )
        assert mixed.get_attr("mu") == reference.get_attr("mu")
    assert mixed.env_is_wrapped(TimeLimit, indices) == reference.env_is_wrapped(TimeLimit, indices)
    mixed.set_attr("mu", 0.5)


def test_missing_attributes_and_indices_are_errors(mixed: Any) -> None:
    assert mixed.has_attr("mu")
    assert not mixed.has_attr("nothing")
    for use in (mixed.get_attr, mixed.env_method):
        with pytest.raises(AttributeError, match="nothing"):
            use("nothing")
    with pytest.raises(IndexError):
        mixed.get_attr("mu", 5)
    assert mixed.get_attr("row", np.int64(-2)) == [3]
    assert mixed.get_attr("row") == list(range(5))
    mixed.step(np.zeros(5, int))


def test_images_are_those_of_the_rows(mixed: Any) -> None:
    assert [image[0, 0, 0] for image in mixed.get_images()] == list(range(5))
