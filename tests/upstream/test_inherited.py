"""Which methods of an object are those of a class that we know."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.vector import VectorEnv

from sb3compat._upstream.inherited import changed, names_in


class Known(VectorEnv[Any, Any, Any]):
    """Its step and its reset call methods of their own."""

    size = 3

    def reset(self, **kwargs: Any) -> Any:
        super().reset(**kwargs)
        return self.start(self.size), {}

    def step(self, actions: Any) -> Any:
        return [self.move(action) for action in actions]

    def start(self, size: int) -> int:
        return size + self.offset

    def move(self, action: int) -> int:
        return self.scaled(action)

    @property
    def offset(self) -> int:
        return 0

    @staticmethod
    def scaled(action: int) -> int:
        return 2 * action

    def unrelated(self) -> None:
        """Called by neither."""


def subclass(**methods: Any) -> Any:
    return type("Derived", (Known,), methods)()


def test_instances_and_plain_subclasses_are_as_the_class() -> None:
    assert changed(Known(), Known, "step", "reset") is None
    assert changed(subclass(size=4, unrelated=None, new=print), Known, "step", "reset") is None


@pytest.mark.parametrize("name", ["step", "reset", "start", "move", "offset", "scaled"])
def test_override_is_found_at_any_depth(name: str) -> None:
    # `move` is called in a comprehension, which is a function of its own up to Python 3.11.
    assert changed(subclass(**{name: lambda *args: None}), Known, "step", "reset") == name
    assert changed(subclass(**{name: lambda *args: None}), Known, "unrelated") is None


@pytest.mark.parametrize("name", ["step", "reset", "start", "move"])
def test_method_of_the_object_itself_is_found(name: str) -> None:
    env = Known()
    setattr(env, name, lambda *args, **kwargs: None)
    assert changed(env, Known, "step", "reset") == name
    setattr(env, name, getattr(Known(), name))  # the method that it has anyway
    assert changed(env, Known, "step", "reset") is None


def test_override_of_what_only_the_interface_defines_is_found() -> None:
    class Calling(Known):
        def step(self, actions: Any) -> Any:
            return self._add_info({}, {}, 0), self.np_random

    assert changed(Calling(), Calling, "step", "reset") is None
    for name in ("_add_info", "np_random"):
        derived = type("Derived", (Calling,), {name: property(lambda self: None)})()
        assert changed(derived, Calling, "step", "reset") == name
        assert changed(derived, Calling, "step", known=(name,)) is None
    own = Calling()
    vars(own)["_add_info"] = lambda *args: {}
    assert changed(own, Calling, "step") == "_add_info"


def test_mixin_before_the_class_is_found_and_one_behind_it_is_not() -> None:
    class Mixin:
        def step(self, actions: Any) -> Any:
            return super().step(actions)  # type: ignore[misc]

    class Before(Mixin, Known):
        pass

    class Behind(Known, Mixin):  # type: ignore[misc]
        pass

    assert changed(Before(), Known, "step", "reset") == "step"
    assert changed(Behind(), Known, "step", "reset") is None


def test_nearest_subclass_stands_for_an_abstract_class() -> None:
    class Abstract(VectorEnv[Any, Any, Any]):
        pass

    class Concrete(Abstract):
        def reset(self, **kwargs: Any) -> Any:
            return 0, {}

        def step(self, actions: Any) -> Any:
            return actions

    class Override(Concrete):
        def step(self, actions: Any) -> Any:
            return super().step(actions)

    assert changed(Concrete(), Abstract, "step", "reset") is None
    assert changed(Override(), Abstract, "step", "reset") == "step"


def test_same_function_in_a_subclass_is_no_change() -> None:
    assert changed(subclass(step=Known.step, scaled=Known.scaled), Known, "step") is None


def decorated(function: Any) -> Any:
    @functools.wraps(function)
    def logged(*args: Any) -> Any:
        return function(*args)

    return logged


def test_decorated_methods_are_methods_of_their_own() -> None:
    assert changed(subclass(step=decorated(Known.step)), Known, "step") == "step"

    class Decorated(Known):
        step = decorated(Known.step)

    class Again(Decorated):
        step = decorated(Known.start)

    assert changed(Decorated(), Decorated, "step") is None
    assert changed(Again(), Decorated, "step") == "step"

    class Below(Decorated):
        def move(self, action: int) -> int:
            return action

    assert changed(Below(), Decorated, "step") == "move"


def test_methods_that_one_function_makes_alike_for_each_class_are_the_same() -> None:
    def made(rows: list[int]) -> Any:
        return lambda self, actions: rows

    class Made(Known):
        step = made([1, 2])

    for rows, expected in (([1, 2], None), ([3], "step")):
        again = type("Again", (Made,), {"step": made(rows)})()
        assert changed(again, Made, "step") == expected


def test_known_names_do_not_matter_unless_they_are_asked_for() -> None:
    for name, expected in (("start", None), ("move", "move"), ("step", "step")):
        env = subclass(**{name: lambda *args: None})
        assert changed(env, Known, "step", "reset", known={"start", "step"}) == expected


def test_names_of_functions_and_callable_objects() -> None:
    def function(env: Any) -> Any:
        return [env.start(row) for row in range(env.num_envs)]

    class Callable:
        def __call__(self, env: Any) -> Any:
            return env.move(gym)

    assert {"start", "num_envs"} <= names_in(function)
    assert {"move"} <= names_in(Callable())
    assert names_in(functools.partial(function)) == set()
