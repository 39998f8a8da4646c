"""How the sub-environments are reached: called, read and set."""

from __future__ import annotations

import multiprocessing
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.vector import SyncVectorEnv

import sb3compat
from sb3compat._convert.types import SubEnvs
from sb3compat._rows.commands import WrapperClass
from sb3compat._rows.subenvs import write_by_row
from sb3compat._rows.vec_env_subenvs import MethodSubEnvs, vec_env_subenvs
from tests.envs import Identity, ScriptedEnv, fns, overriding, script
from tests.handwritten import CountingVecEnv
from tests.lockstep_back import dummy, subproc

vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")
base_vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env.base_vec_env")


class Refusing(ScriptedEnv):
    """It has an attribute that takes numbers only, and one that cannot be set."""

    version = property(lambda self: 3)
    wind = property(lambda self: 3, lambda self, value: operator.index(value))


WAYS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], SubEnvs]]] = {
    "local": (dummy, vec_env_subenvs),
    "workers": (subproc, vec_env_subenvs),
    "methods": (dummy, MethodSubEnvs),
    "methods of to_sb3": (lambda made: sb3compat.to_sb3(SyncVectorEnv(made)), MethodSubEnvs),
}


@pytest.fixture(params=WAYS)
def subenvs(request: pytest.FixtureRequest) -> Iterator[SubEnvs]:
    """Each way to two scripted sub-environments below a wrapper."""
    build, reach = WAYS[request.param]
    made = [lambda row=row: gym.wrappers.TimeLimit(Refusing(script(), row), 9) for row in (0, 1)]
    env = build(made)
    yield reach(env)
    env.close()


def read(subenvs: SubEnvs, name: str, *args: Any, **kwargs: Any) -> list[Any]:
    return subenvs.ask(("read", name, args, kwargs), [0, 1])


def test_every_way_sets_one_value_for_each_row_where_it_is_held(subenvs: SubEnvs) -> None:
    write_by_row(subenvs, "mu", [[1, 2], 3])
    assert read(subenvs, "mu") == [[1, 2], 3]
    # The sub-environment itself has it, and not the wrapper around it.
    assert read(subenvs, "set_mu", 5.0) == [5.0, 6.0]
    assert read(subenvs, "mu") == [5.0, 5.0]
    subenvs.ask(("set", "mu", 7.0), [1])  # on the wrapper
    assert read(subenvs, "set_mu", 8.0) == [8.0, 9.0]
    assert read(subenvs, "mu") == [8.0, 7.0]


def test_missing_methods_of_a_vec_env_are_named() -> None:
    subenvs = MethodSubEnvs(CountingVecEnv())
    for use, name in (
        (lambda: read(subenvs, "mu"), "get_attr"),
        (lambda: read(subenvs, "mu", 1), "env_method"),
        (lambda: write_by_row(subenvs, "mu", [1, 2]), "set_attr"),
    ):
        with pytest.raises(AttributeError, match=f"no method '{name}'"):
            use()


def test_values_are_set_by_set_attr_where_wrappers_cannot_be_asked() -> None:
    class Bare(CountingVecEnv):
        values: dict[int, Any] = {}

        def set_attr(self, name: str, value: Any, indices: Any = None) -> None:
            self.values[indices[0]] = (name, value)

        def env_method(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    env = Bare()
    write_by_row(MethodSubEnvs(env), "mu", [7, [8]])
    assert env.values == {0: ("mu", 7), 1: ("mu", [8])}


def test_value_that_a_sub_environment_refuses_is_not_put_on_a_wrapper(subenvs: SubEnvs) -> None:
    for name, error in (("wind", TypeError), ("version", AttributeError)):
        with pytest.raises(error):
            write_by_row(subenvs, name, ["strong", "strong"])
        assert subenvs.ask(("get", name), [0, 1]) == [3, 3]


def test_method_of_its_own_is_not_passed_by() -> None:
    env = dummy(fns())
    env.env_is_wrapped = lambda cls, indices: ["own", "own"]
    subenvs = vec_env_subenvs(env)
    assert subenvs.ask(("is_wrapped", WrapperClass(gym.Wrapper)), [0, 1]) == ["own", "own"]


def test_one_value_is_set_where_rows_share_the_attribute() -> None:
    native = gym.make_vec("CartPole-v1", num_envs=3)
    envs = sb3compat.to_gymnasium(sb3compat.to_sb3(native), autoreset_mode="Disabled")
    for value in (7.0, [6.0] * 3, (5.0, 5.0, 5.0)):
        envs.set_attr("gravity", value)
        one = value if isinstance(value, float) else value[0]
        assert native.gravity == one  # type: ignore[attr-defined]
        assert envs.get_attr("gravity") == (one,) * 3
    with pytest.raises(ValueError, match="Expected indices=None"):
        envs.set_attr("gravity", [1.0, 2.0, 3.0])
    assert envs.get_attr("gravity") == (5.0,) * 3


def test_equal_values_that_can_be_written_to_stay_those_of_their_rows() -> None:
    subenvs = MethodSubEnvs(dummy(fns()))
    values: list[Any] = [[], []]
    write_by_row(subenvs, "mu", values)
    held = read(subenvs, "mu")
    assert held[0] is values[0]
    assert held[1] is values[1]


def test_row_named_twice_is_asked_twice_through_the_methods_of_watched_workers() -> None:
    env = subproc(fns())
    overriding(env, "get_attr")
    rows = sb3compat.to_sb3(Identity(sb3compat.to_gymnasium(env)))
    rows.reset()
    assert rows.get_attr("mu", [1, 0, 1]) == [0.5] * 3
    assert rows.env_method("set_mu", 2.0, indices=[1, 1]) == [3.0, 3.0]


def own_loop(remote: Any, make: Any) -> None:
    """SB3's worker, in the words of a user."""
    single, command = make.var(), ""
    while command != "close":
        command, data = remote.recv()
        if command == "reset":
            remote.send(single.reset(seed=data[0]))
        elif command == "env_method":
            remote.send(single.get_wrapper_attr(data[0])(*data[1], **data[2]))
        elif command == "get_attr":
            remote.send(single.get_wrapper_attr(data))


class OwnLoop(vec_env.SubprocVecEnv):  # type: ignore[misc, name-defined]
    def __init__(self, made: list[Any]) -> None:
        pickled = [base_vec_env.CloudpickleWrapper(fn) for fn in made]
        pipes = [multiprocessing.Pipe() for _ in made]
        self.remotes, self.waiting, self.closed = tuple(ours for ours, _ in pipes), False, False
        fork = multiprocessing.get_context("fork").Process
        self.processes = [
            fork(target=own_loop, args=(theirs, fn), daemon=True)
            for (_, theirs), fn in zip(pipes, pickled, strict=True)
        ]
        for process in self.processes:
            process.start()
        first = made[0]()
        spaces = first.observation_space, first.action_space
        vec_env.VecEnv.__init__(self, len(made), *spaces)


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
def test_workers_of_another_loop_are_reached_by_the_methods_and_live_on() -> None:
    env = OwnLoop(fns(2))
    envs = sb3compat.to_gymnasium(env)
    assert envs.get_attr("row") == (0, 1)
    envs.reset()
    assert env.get_attr("row") == [0, 1]
    env.close()


class TwoRowsOfOne(vec_env.DummyVecEnv):  # type: ignore[misc, name-defined]
    """Presents two rows, and has one sub-environment."""

    def __init__(self) -> None:
        super().__init__(fns(1))
        self.num_envs = 2


def test_vec_env_with_other_rows_than_environments_is_reached_by_its_methods() -> None:
    env = TwoRowsOfOne()
    assert isinstance(vec_env_subenvs(env), MethodSubEnvs)
    del env.envs  # as in a class that has skipped the `__init__` of SB3's
    assert isinstance(vec_env_subenvs(env), MethodSubEnvs)
