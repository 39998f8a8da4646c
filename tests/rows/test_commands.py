"""The commands on a sub-environment, which do what its own methods do."""

from __future__ import annotations

import multiprocessing
import pickle
import sys
from abc import ABC
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

import sb3compat
from sb3compat._rows.commands import WrapperClass, run_command
from tests import envs
from tests.envs import Returns, ScriptedEnv, scaling, script
from tests.lockstep_back import dummy
from tests.parallel.teams import forked
from tests.profiles import nightly


class Identity(gym.Wrapper[Any, Any, Any, Any]):
    """A wrapper of a class of this module."""


class Registered(ABC):  # noqa: B024
    """Has instances that do not derive from it."""


Registered.register(Identity)


@runtime_checkable
class Marked(Protocol):
    """Whatever has the method."""

    def mark(self) -> None: ...


class Other(gym.Wrapper[Any, Any, Any, Any]):
    def mark(self) -> None: ...

    stands_for = (Identity.__module__, Identity.__qualname__)


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        (Identity, (True, False)),
        ((int, (Identity,)), (True, False)),
        (Identity | Other, (True, True)),
        (gym.Wrapper, (True, True)),
        (gym.wrappers.TimeLimit, (False, False)),
        (Registered, (True, False)),
        ((Marked, int), (False, True)),
        ((), (False, False)),
    ],
)
def test_wrapper_is_found_by_its_class_and_elsewhere_by_its_name(
    classes: Any, expected: tuple[bool, bool]
) -> None:
    here = WrapperClass(classes)
    there = pickle.loads(pickle.dumps(here))
    assert there.classes == here.classes
    for wrapper, wrapped in zip((Identity, Other), expected, strict=True):
        env = gym.wrappers.OrderEnforcing(wrapper(ScriptedEnv(script())))
        assert run_command(env, "is_wrapped", here) == wrapped
        # There, a wrapper is also found by the class that it stands for.
        stands = wrapper is Other and expected[0] and classes is not Registered
        assert run_command(env, "is_wrapped", there) == (wrapped or stands)


@pytest.mark.parametrize("classes", [3, "Monitor", None, (3, Identity), [Identity]])
def test_what_is_no_class_is_refused(classes: Any) -> None:
    with pytest.raises(TypeError):
        WrapperClass(classes)


def subproc(fns: list[Any], start_method: str) -> Any:
    vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")
    theirs = vec_env.SubprocVecEnv(fns, start_method)
    return sb3compat.to_sb3(envs.Identity(sb3compat.to_gymnasium(theirs)))


METHODS = multiprocessing.get_all_start_methods() if nightly() else ["fork"]
WAYS: dict[str, Callable[[list[Any], Any], Any]] = {
    "async": lambda fns, how: sb3compat.to_sb3(AsyncVectorEnv(fns, context=how)),
    "parallel": lambda fns, how: sb3compat.ParallelVecEnv(fns, workers=1, start_method=how),
    "subproc": subproc,
}


@pytest.mark.parametrize(
    ("way", "how"),
    [("parallel", None), ("async", "spawn"), *[(way, how) for way in WAYS for how in METHODS]],
)
def test_wrapper_is_found_by_its_class_where_its_name_does_not_tell(
    way: str, how: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ten, half, of_main = scaling(10), scaling(0.5), scaling(1)
    for cls in (ten, half, of_main):
        cls.__module__ = "__main__"
    of_main.__qualname__ = "Scale"
    monkeypatch.setattr(sys.modules["__main__"], "Scale", of_main, raising=False)

    class Own:
        class Inner(gym.Wrapper[Any, Any, Any, Any]):
            pass

    fns: list[Any] = [
        lambda: envs.Ten(envs.Holder.Inner(ScriptedEnv(script()))),
        lambda: ten(Own.Inner(ScriptedEnv(script()))),
        lambda: of_main(ScriptedEnv(script())),
    ]
    classes = [ten, half, of_main, Own.Inner, envs.Ten, envs.Half, envs.Holder.Inner]
    env = WAYS[way](fns, how)
    env.reset()
    assert len(env.step([0, 0, 0])[0]) == 3
    truth: Any = sb3compat.to_sb3(SyncVectorEnv(fns))
    expected = [truth.env_is_wrapped(cls) for cls in classes]
    assert [row.count(True) for row in expected] == [1, 0, 1, 1, 1, 0, 1]
    assert [env.env_is_wrapped(cls) for cls in classes] == expected
    truth.close()
    env.close()


# What gym before 0.26 returns.
OLD: list[tuple[dict[str, Any], str]] = [
    ({"step": lambda *result: result[:4]}, "five values from step.*got 4 "),
    ({"reset": lambda *result: result[:1]}, "two values.*got 1 "),
]


@pytest.mark.parametrize(("change", "wanted"), OLD)
@pytest.mark.parametrize(
    "make",
    [
        lambda fns: sb3compat.to_sb3(SyncVectorEnv(fns)),
        lambda fns: forked(fns, 1),
        lambda fns: sb3compat.to_gymnasium(forked(fns, 1), autoreset_mode="NextStep"),
        lambda fns: sb3compat.to_gymnasium(dummy(fns), autoreset_mode="NextStep"),
    ],
)
def test_another_number_of_values_is_an_error_that_names_them(
    make: Callable[..., Any], change: dict[str, Any], wanted: str
) -> None:
    env = make([lambda: Returns(**change)])
    with pytest.raises(ValueError, match=f"Expected a sub-environment to return {wanted}"):
        step_once(env)


def step_once(env: Any) -> None:
    env.reset()
    env.step([0])
