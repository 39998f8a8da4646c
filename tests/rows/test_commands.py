"""The commands on a sub-environment, which do what its own methods do."""

from __future__ import annotations

import pickle
from abc import ABC
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import pytest

from sb3compat._rows.commands import WrapperClass, run_command
from tests.envs import ScriptedEnv, script


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
