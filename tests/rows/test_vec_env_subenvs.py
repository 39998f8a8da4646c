"""How the sub-environments are reached: called, read and set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.vector import AutoresetMode

import sb3compat
from sb3compat._ipc.subproc_vec_env import GuardedWorkers
from sb3compat._rows.commands import run_command
from sb3compat._rows.vec_env_subenvs import LocalEnvs, MethodEnvs, SubEnvs, WorkerEnvs
from tests.envs import ScriptedEnv, fns, script
from tests.handwritten import CountingVecEnv
from tests.lockstep_back import dummy, subproc

pytest.importorskip("stable_baselines3")

SAME_STEP = AutoresetMode.SAME_STEP


WAYS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], SubEnvs]]] = {
    "local": (dummy, lambda env: LocalEnvs(env, env.envs)),
    "workers": (subproc, lambda env: WorkerEnvs(env, GuardedWorkers(env, run_command))),
    "methods": (dummy, MethodEnvs),
}


@pytest.fixture(params=WAYS)
def access(request: pytest.FixtureRequest) -> Iterator[SubEnvs]:
    """Each way to two scripted sub-environments below a wrapper."""
    build, reach = WAYS[request.param]
    made = [lambda row=row: gym.wrappers.TimeLimit(ScriptedEnv(script(), row), 9) for row in (0, 1)]
    env = build(made)
    yield reach(env)
    env.close()


def test_every_way_calls_methods_and_reads_attributes(access: SubEnvs) -> None:
    assert access.read("mu", (), {}, [0, 1]) == [0.5, 0.5]
    assert access.read("set_mu", (2.0,), {}, [0, 1]) == [2.0, 3.0]
    assert access.read("set_mu", (), {"mu": 3.0}, [0, 1]) == [3.0, 4.0]
    assert access.read("get_wrapper_attr", ("mu",), {}, [0, 1]) == [3.0, 3.0]
    frames = access.read("render", (), {}, [0, 1])  # a method without arguments is called
    assert [frame[0, 0, 0] for frame in frames] == [0, 1]
    with pytest.raises(AttributeError, match="nothing_here"):
        access.read("nothing_here", (), {}, [0, 1])


def test_every_way_sets_one_value_for_each_row_where_it_is_held(access: SubEnvs) -> None:
    access.write("mu", [[1, 2], 3])
    assert access.read("mu", (), {}, [0, 1]) == [[1, 2], 3]
    # The sub-environment itself has it, and not the wrapper around it.
    assert access.read("set_mu", (5.0,), {}, [0, 1]) == [5.0, 6.0]
    assert access.read("mu", (), {}, [0, 1]) == [5.0, 5.0]


def test_missing_methods_of_a_vec_env_are_named() -> None:
    access = MethodEnvs(CountingVecEnv())
    for use, name in (
        (lambda: access.read("mu", (), {}, [0, 1]), "get_attr"),
        (lambda: access.read("mu", (1,), {}, [0, 1]), "env_method"),
        (lambda: access.write("mu", [1, 2]), "set_attr"),
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
    MethodEnvs(env).write("mu", [7, [8]])
    assert env.values == {0: ("mu", 7), 1: ("mu", [8])}


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
    access = MethodEnvs(dummy(fns()))
    values: list[Any] = [[], []]
    access.write("mu", values)
    held = access.read("mu", (), {}, [0, 1])
    assert held[0] is values[0]
    assert held[1] is values[1]
