from __future__ import annotations

import pickle
import threading
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorWrapper
from gymnasium.wrappers import TimeLimit

import sb3compat
from tests.envs import Identity, ScriptedEnv, Strict, fns, script
from tests.lockstep import same
from tests.lockstep_back import dummy, subproc
from tests.native import NativeEnv
from tests.parallel.teams import KINDS, forked, parts_of
from tests.vec_wrappers import HandsOn

DummyVecEnv: Any = pytest.importorskip("stable_baselines3.common.vec_env").DummyVecEnv


def test_value_that_cannot_be_pickled_leaves_the_workers_alive() -> None:
    env = sb3compat.to_sb3(AsyncVectorEnv(fns(3)))
    for value in (lambda: 1, threading.Lock()):
        with pytest.raises((AttributeError, TypeError, pickle.PicklingError), match="pickle"):
            env.set_attr("mu", value)
        with pytest.raises((AttributeError, TypeError, pickle.PicklingError), match="pickle"):
            env.env_method("set_mu", mu=value, indices=[2])
    assert env.get_attr("mu") == [0.5, 0.5, 0.5]
    env.close()


@pytest.mark.parametrize("cls", [SyncVectorEnv, AsyncVectorEnv])
def test_row_that_is_named_twice_is_asked_twice(cls: Any) -> None:
    env, reference = sb3compat.to_sb3(cls(fns(3))), DummyVecEnv(fns(3))
    for either in (env, reference):
        either.reset()
    expected = reference.env_method("step", 0, indices=[1, 0, 1])
    same(env.env_method("step", 0, indices=[1, 0, 1]), expected)
    env.close()


def test_methods_of_all_rows_are_refused_where_there_are_no_single_ones(native: Any) -> None:
    for name in ("reset", "step", "close"):
        with pytest.raises(ValueError, match=rf"got '{name}'.*Use {name}\(\) of the vector"):
            native.env_method(name)
    native.reset()


def test_compute_reward_takes_batches_of_any_length(native: Any) -> None:
    """HER asks the first row to compute the rewards of a batch of any length."""

    def compute_reward(achieved: Any, desired: Any, info: Any) -> Any:
        return np.asarray(achieved) - np.asarray(desired)

    native.env.compute_reward = compute_reward
    for length in (1, native.num_envs, 7):
        goals = np.arange(length)
        (rewards,) = native.env_method("compute_reward", goals, goals * 2, None, indices=[0])
        same(rewards, -goals)


@pytest.fixture
def native() -> Any:
    return sb3compat.to_sb3(NativeEnv(fns(3), AutoresetMode.SAME_STEP))


def test_native_environment_answers_for_all_rows(native: Any) -> None:
    native.set_attr("colour", "green", indices=[])
    assert native.env_method("paint", "red", indices=[]) == []
    assert native.get_attr("colour", [0, 2]) == ["blue", "blue"]
    assert native.env_method("paint", "red") == ["red 0", "red 1", "red 2"]
    native.set_attr("colour", "green")
    assert native.env.colour == "green"
    assert native.env_is_wrapped(TimeLimit) == [False, False, False]
    with pytest.raises(AttributeError, match="no sub-environments that could have it"):
        native.get_attr("row")
    with pytest.raises(ValueError, match="indices=None"):
        native.set_attr("colour", "green", indices=[0])
    with pytest.raises(ValueError, match="indices=None"):
        native.env_method("paint", "red", indices=0)


def test_envs_and_spec_are_those_of_the_environment(native: Any) -> None:
    source = gym.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync")
    env: Any = sb3compat.to_sb3(source)
    assert env.envs is source.unwrapped.envs  # type: ignore[attr-defined]
    assert env.spec.id == "CartPole-v1"
    assert not hasattr(native, "envs")
    with pytest.raises(AttributeError, match="env_method"):
        _ = native.envs


# --- every way, by index --------------------------------------------------------------------------

ADAPTED: dict[str, Any] = {"SyncVectorEnv": SyncVectorEnv, "AsyncVectorEnv": AsyncVectorEnv}


BELOW: dict[str, Any] = {
    "dummy below a wrapper": dummy,
    "subproc below a wrapper": subproc,
    "methods below a wrapper": lambda made: HandsOn(dummy(made)),
}
WAYS = [*ADAPTED, *BELOW, "single", *KINDS]
INDICES: list[Any] = [None, 0, -1, [3, 1], (4, 0, 4), range(1, 5, 2), [], {1}, np.array([-1, 0])]


def limited() -> list[Any]:
    """The functions of five rows, every other one of which has a wrapper."""
    return [(lambda fn=fn: TimeLimit(fn(), 9)) if row % 2 else fn for row, fn in enumerate(fns(5))]


@pytest.fixture(scope="module", params=WAYS)
def mixed(request: pytest.FixtureRequest) -> Any:
    """Each way to five rows; in workers, three of them are one part."""
    made: Any
    if request.param in ADAPTED:
        made = sb3compat.to_sb3(ADAPTED[request.param](limited()))
    elif request.param in BELOW:
        made = sb3compat.to_sb3(Identity(sb3compat.to_gymnasium(BELOW[request.param](limited()))))
    else:
        made = forked(parts_of(limited(), [("single", 1), (request.param, 3), ("single", 1)]), 2)
    made.reset()
    yield made
    made.close()


@pytest.mark.parametrize("indices", INDICES, ids=str)
def test_access_by_index_equals_dummy_vec_env(mixed: Any, indices: Any) -> None:
    reference = DummyVecEnv(limited())
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
    with pytest.raises(TypeError, match="not callable"):
        mixed.env_method("mu")
    for indices, kind in ((5, IndexError), (-6, IndexError), ("a", TypeError), (0.5, TypeError)):
        with pytest.raises(kind):
            mixed.get_attr("mu", indices)
    assert mixed.get_attr("row", np.int64(-2)) == [3]
    assert mixed.get_attr("row") == list(range(5))
    mixed.step(np.zeros(5, int))


def test_images_are_those_of_the_rows(mixed: Any) -> None:
    assert [image[0, 0, 0] for image in mixed.get_images()] == list(range(5))
    assert mixed.render().shape == (12, 8, 3)


@pytest.mark.parametrize("result", [np.array(3.0), np.float32(3), np.array([1, 2]), [4, 5], 6])
def test_result_of_a_native_method_is_split_only_where_it_is_a_batch(result: Any) -> None:
    class Tells(NativeEnv):
        def tell(self) -> Any:
            return result

    answers = sb3compat.to_sb3(Tells(fns(2), AutoresetMode.SAME_STEP)).env_method("tell")
    expected = list(result) if np.ndim(result) else [result] * 2
    assert answers == expected


class Scaling(SyncVectorEnv):
    def set_attr(self, name: str, values: Any) -> None:
        super().set_attr(name, [10 * value for value in values])


class Asking(AsyncVectorEnv):
    def call_async(self, name: str, /, *args: Any, **kwargs: Any) -> None:
        super().call_async(name, *args, **kwargs)


class Calling(VectorWrapper):
    def call(self, name: str, *args: Any) -> Any:
        return [("wrapped", value) for value in self.env.call(name, *args)]  # type: ignore[attr-defined]


def replaced(made: Any) -> Any:
    env: Any = VectorWrapper(SyncVectorEnv(made))
    env.set_attr = print
    return env


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (Scaling, "Scaling.set_attr"),
        (Asking, "Asking.call_async"),
        (replaced, "VectorWrapper.set_attr"),
        (lambda made: Calling(SyncVectorEnv(made)), "Calling.call"),
        (lambda made: Calling(sb3compat.to_gymnasium(dummy(made))), "Calling.call"),
    ],
)
def test_access_that_bypasses_a_method_of_the_vector_environment_is_warned_of(
    make: Any, name: str
) -> None:
    with pytest.warns(UserWarning, match=f"not by {name}"):
        env = sb3compat.to_sb3(make(fns(2)))
    env.set_attr("mu", 1)
    assert env.get_attr("mu") == [1, 1]


class Facade(NativeEnv):
    """It answers for a simulator."""

    def __getattr__(self, name: str) -> Any:
        if name != "masks":
            raise AttributeError(name)
        return lambda: np.ones(self.num_envs)


@pytest.mark.parametrize("wrap", [lambda env: env, VectorWrapper])
def test_what_a_native_environment_answers_by_getattr_is_found(wrap: Any) -> None:
    env = sb3compat.to_sb3(wrap(Facade(fns(2), AutoresetMode.SAME_STEP)))
    assert env.has_attr("masks")
    assert not env.has_attr("nothing")
    assert env.env_method("masks") == [1, 1]


class Legacy(ScriptedEnv):
    """Answers to an old name."""

    def get_wrapper_attr(self, name: str) -> Any:
        return 3 if name == "legacy" else super().get_wrapper_attr(name)


@pytest.mark.parametrize("build", [SyncVectorEnv, AsyncVectorEnv, forked])
def test_an_attribute_is_there_if_it_can_be_read_as_in_sb3(build: Any) -> None:
    made = [lambda row=row: Legacy(script(), row) for row in range(2)]
    ours = build(made)
    for env in (ours if build is forked else sb3compat.to_sb3(ours), DummyVecEnv(made)):
        assert [env.has_attr(name) for name in ("legacy", "mu", "nothing")] == [True, True, False]
        assert env.get_attr("legacy") == [3, 3]
        env.close()


def test_environment_may_refuse_attributes_that_it_does_not_know() -> None:
    made = [lambda row=row: Strict(script(), row) for row in range(2)]
    for env in (
        sb3compat.to_sb3(AsyncVectorEnv(made)),
        sb3compat.to_sb3(sb3compat.to_gymnasium(subproc(made))),
        sb3compat.to_sb3(sb3compat.to_gymnasium(HandsOn(subproc(made)))),
        forked(made, 1),
    ):
        assert env.get_attr("row") == [0, 1]
