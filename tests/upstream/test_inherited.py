"""Which methods of an object are those of a class that we know."""

from __future__ import annotations

from typing import Any

import pytest
from gymnasium.vector import VectorEnv

from sb3compat._upstream.inherited import HARMLESS, changed


class Known(VectorEnv[Any, Any, Any]):
    """Its methods, a property and a static method."""

    size = 3

    def reset(self, **kwargs: Any) -> Any:
        return self.start(), {}

    def step(self, actions: Any) -> Any:
        return [self.scaled(action) for action in actions]

    def start(self) -> int:
        return self.offset

    @property
    def offset(self) -> int:
        return 0

    @staticmethod
    def scaled(action: int) -> int:
        return 2 * action


OWN = ("step", "reset", "start", "offset", "scaled")


def subclass(**methods: Any) -> Any:
    return type("Derived", (Known,), methods)()


def test_instances_and_plain_subclasses_are_as_the_class() -> None:
    assert changed(Known(), Known) is None
    assert changed(subclass(size=4, new=print, __repr__=lambda self: "x"), Known) is None
    assert changed(subclass(step=Known.step), Known) is None


@pytest.mark.parametrize("name", [*OWN, "np_random"])
def test_override_is_found(name: str) -> None:
    env = subclass(**{name: lambda *args: None})
    assert changed(env, Known) == changed(env, Known, name) == name
    assert changed(env, Known, "unwrapped") is None


@pytest.mark.parametrize("name", HARMLESS)
def test_override_without_a_transition_matters_only_where_it_is_named(name: str) -> None:
    env = subclass(**{name: lambda *args: None})
    assert changed(env, Known) is None
    assert changed(env, Known, name) == (name if hasattr(Known, name) else None)


@pytest.mark.parametrize("name", ["step", "reset", "start"])
def test_method_of_the_object_itself_is_found(name: str) -> None:
    env = Known()
    setattr(env, name, lambda *args, **kwargs: None)
    assert changed(env, Known) == name
    setattr(env, name, getattr(Known(), name))  # the method that it has anyway
    assert changed(env, Known) is None


def test_mixin_before_the_class_is_found_and_one_behind_it_is_not() -> None:
    class Mixin:
        def step(self, actions: Any) -> Any:
            return super().step(actions)  # type: ignore[misc]

    class Before(Mixin, Known):
        pass

    class Behind(Known, Mixin):  # type: ignore[misc]
        pass

    assert changed(Before(), Known) == "step"
    assert changed(Behind(), Known) is None


def test_nearest_subclass_with_a_step_stands_for_an_abstract_class() -> None:
    class Abstract(VectorEnv[Any, Any, Any]):
        pass

    class Concrete(Abstract):
        def step(self, actions: Any) -> Any:
            return actions

    class Override(Concrete):
        def step(self, actions: Any) -> Any:
            return super().step(actions)

    assert changed(Concrete(), Abstract) is None
    assert changed(Override(), Abstract) == "step"
    assert changed(Override(), Override) is None
