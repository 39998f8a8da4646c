"""Objects that are no factory of a vector environment."""

from __future__ import annotations

import multiprocessing
import sys
import time
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.vector import AutoresetMode, VectorWrapper

from conformance.specimens.rows_env import Form, RowsEnv
from sb3compat.conformance import FactoryError, check_vec_env, check_vector_env
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.subject.interface import mode_of
from tests.conformance.runs import here
from tests.conformance.tiny import TinyVecEnv


class Sized(TinyVecEnv):
    def __init__(self, rows: int, *, limit: int = 9) -> None:
        super().__init__()


class Spaceless(TinyVecEnv):
    @property
    def action_space(self) -> Any:
        raise AttributeError("gone")

    @action_space.setter
    def action_space(self, space: Any) -> None:
        pass


def changed(**attributes: Any) -> Any:
    env = TinyVecEnv()
    vars(env).update(attributes)
    return env


def test_an_environment_is_no_factory() -> None:
    with pytest.raises(
        FactoryError, match=r"a function that makes the environment, got TinyVecEnv"
    ):
        here(TinyVecEnv())
    with pytest.raises(
        FactoryError, match=r"Gymnasium VectorEnv, got an SB3 .*\. Use check_vec_env\.$"
    ):
        check_vector_env(TinyVecEnv, isolate=False)
    with pytest.raises(FactoryError, match=r"SB3 VecEnv, got a Gym.*\. Use check_vector_env\.$"):
        check_vec_env(lambda: gym.make_vec("CartPole-v1", num_envs=2), isolate=False)


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (lambda: None, r"got NoneType: None\. Does it return what it makes\?$"),
        (
            lambda: gym.make("CartPole-v1"),
            r"That is a single environment\. Make several rows of it",
        ),
        (
            lambda rows: TinyVecEnv(rows),
            r"and takes no arguments, got .*: missing .*'rows'\. Write .* return make\(rows=",
        ),
        (Sized, r"'rows'\. Write a .*, such as: def make_env\(\): return Sized\(rows=\.\.\.\)$"),
        (
            "CartPole-v1",
            r"got str: 'CartPole-v1'\. Pass a function that makes it; an id is for the",
        ),
        (
            "my:make",
            r"got str: 'my:make'\. Import the function and pass it; MODULE:NAME is for the",
        ),
        (3, r"got int: 3\. Pass a function without arguments\.$"),
        (lambda: 3, r"got int: 3\. Return one of these\.$"),
        (lambda: sys.exit(3), r"Expected the factory to make an environment, got sys\.exit\(3\)"),
        (lambda: changed(num_envs=0), r"at least one row, got num_envs=0 \(int\) in TinyVecEnv"),
        (lambda: changed(num_envs=None), r"got num_envs=None \(NoneType\) in TinyVecEnv"),
        (lambda: changed(action_space=2), r"a Gymnasium space, got action_space=2 \(int\) in Tiny"),
        (Spaceless, r"action_space, got Spaceless, whose action_space raised AttributeError: gone"),
    ],
)
def test_wrong_factories_are_refused(factory: Any, message: str) -> None:
    with pytest.raises(FactoryError, match=message):
        here(factory)


def test_processes_of_others_are_not_those_of_the_environment() -> None:
    child = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(1000,))
    child.start()
    try:
        assert not examine(TinyVecEnv).workers
    finally:
        child.kill()
        child.join()


class ResetsRows(VectorWrapper):
    """Would reset the rows itself."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.metadata = {**env.metadata, "autoreset_mode": AutoresetMode.SAME_STEP}


def test_a_wrapper_may_declare_another_mode() -> None:
    env = RowsEnv(Form(mode="Disabled"))
    assert mode_of(VectorWrapper(env)) == "Disabled"
    assert mode_of(VectorWrapper(ResetsRows(env))) == "SameStep"
    assert mode_of(env) == "Disabled"
