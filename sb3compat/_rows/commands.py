"""The commands on a sub-environment, in this process or in a worker; there are no others.

A command is a tuple of a name and arguments. `step` and `reset` drive the row; the others reach
what the sub-environment has:

- `("has", name)`: whether it has the attribute, on any wrapper.
- `("get", name)`: the attribute, from the outermost wrapper that has it.
- `("set", name, value)`: sets it on the outermost wrapper, as SB3's `set_attr` does.
- `("write", name, value)`: sets it on the wrapper that has it, as Gymnasium's `set_attr` does.
- `("call", name, args, kwargs)`: calls a method, as SB3's `env_method` does.
- `("read", name, args, kwargs)`: calls what can be called and gets what cannot, as Gymnasium's
  `call` does.
- `("is_method", name)`: whether it can be called; it is not sent for that.
- `("is_wrapped", wrapper_class)`: whether a wrapper of a `WrapperClass` is around it.

Workers of other libraries import this module; it imports neither SB3 nor torch.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Sequence
from typing import Any, get_args

import gymnasium as gym

from sb3compat._convert.arrays import copy_value
from sb3compat._convert.infos import checked_info, own_info
from sb3compat._convert.types import (
    Action,
    ClassInfo,
    Info,
    Kwargs,
    Observation,
    ResetResult,
    SingleEnv,
)
from sb3compat._ipc import by_value
from sb3compat.errors import ConversionError, shown

# Observation, reward, terminated, truncated and info of a step; and observation and info of the
# reset within the step, if there was one. A plain tuple, because one is made for each row in each
# step.
Outcome = tuple[Observation, Any, bool, bool, Info, ResetResult | None]


def step_env(env: SingleEnv, action: Action, same_step: bool) -> Outcome:
    """Step a sub-environment and, with `same_step`, reset it where that ends its episode."""
    result = env.step(action)
    try:
        observation, reward, terminated, truncated, info = result
    except (TypeError, ValueError):
        raise wrong_result("step", result) from None
    if not (terminated or truncated):
        return observation, reward, False, False, info, None
    first = None
    if same_step:
        # Before the reset, which may overwrite the very objects that `step` returned.
        observation, info = copy_value(observation), own_info(checked_info(info))
        first = reset_result(env.reset())
    # Both at once is terminated, as everywhere in SB3.
    return observation, reward, bool(terminated), not terminated, info, first


# What Gymnasium's methods of a single environment return.
_VALUES = {
    "step": "five values from step: observation, reward, terminated, truncated and info",
    "reset": "two values from reset: observation and info",
}


def wrong_result(method: str, result: Any) -> ConversionError:
    """The error for a sub-environment that returns another number of values."""
    count = f"{len(result)} values" if isinstance(result, tuple) else shown(result)
    return ConversionError(
        f"Expected a sub-environment to return {_VALUES[method]}; got {count}. Return these, or "
        "convert an environment of the older gym by shimmy (pip install shimmy)."
    )


def reset_result(result: Any) -> ResetResult:
    """What a reset has returned, if that is an observation and an info.

    Raises:
        ConversionError: If it is something else.
    """
    try:
        observation, info = result
    except (TypeError, ValueError):
        raise wrong_result("reset", result) from None
    return observation, info


def _call(env: SingleEnv, name: str, args: Any, kwargs: Kwargs) -> Any:
    return env.get_wrapper_attr(name)(*args, **kwargs)


def _read(env: SingleEnv, name: str, args: Any, kwargs: Kwargs) -> Any:
    value = env.get_wrapper_attr(name)
    return value(*args, **kwargs) if callable(value) else value


class WrapperClass:
    """One or several classes of wrappers to look for.

    It is sent to another process by name, if it can be imported there: unpickling the class itself
    would import its module (torch, for SB3's `Monitor`). For the same reason a wrapper may name a
    class that it `stands_for`. Names say nothing of a class of `__main__` or inside a function: two
    classes may have the same, and another process may have it without its `__qualname__`.

    Args:
        classes: What `isinstance` takes as its second argument.

    Raises:
        TypeError: If it is something else.
    """

    def __init__(self, classes: ClassInfo) -> None:
        listed = _listed(classes)
        others = [cls for cls in listed if not _is_importable(cls)]
        self._names = [(c.__module__, c.__qualname__) for c in listed if c not in others]
        self._places = [place for cls in others for place in _places(cls)]
        self._marks = [by_value.mark_of(cls) for cls in others]  # by which a fork knows its own
        # An abstract class or a protocol may have instances that do not derive from it.
        self._decides = bool(others) or any(
            type(c).__instancecheck__ is not type.__instancecheck__ for c in listed
        )
        self._classes = classes
        self._data: bytes | None = None  # the classes, where they have come from elsewhere

    @property
    def classes(self) -> ClassInfo:
        """The classes themselves."""
        return self._classes if self._data is None else pickle.loads(self._data)

    def is_around(self, env: SingleEnv) -> bool:
        """Whether a wrapper of that class is anywhere around the environment."""
        while isinstance(env, gym.Wrapper):
            if self._is_class_of(env):
                return True
            env = env.env
        return False

    def _is_class_of(self, wrapper: SingleEnv) -> bool:
        if self._data is None:
            return isinstance(wrapper, self._classes)
        cls = type(wrapper)
        known = {(base.__module__, base.__qualname__) for base in cls.__mro__}
        if not known.isdisjoint(self._names) or getattr(cls, "stands_for", None) in self._names:
            return True
        if any(by_value.class_at(*place) in cls.__mro__ for place in self._places):
            return True
        if self._marks and any(by_value.mark_of(base) in self._marks for base in cls.__mro__):
            return True
        return self._decides and isinstance(wrapper, self.classes)

    def __getstate__(self) -> Any:
        return self._names, self._places, self._marks, self._decides, by_value.dumps(self.classes)

    def __setstate__(self, state: Any) -> None:
        self._names, self._places, self._marks, self._decides, self._data = state


def _is_importable(cls: type) -> bool:
    """Whether other processes can import the class by its name."""
    name = cls.__module__
    return name != "__main__" and by_value.class_at(name, cls.__qualname__) is cls


def _places(cls: type) -> list[tuple[str, str]]:
    """Where its module has a class that a function has made, and other processes so have theirs."""
    module = cls.__module__
    members = {} if module == "__main__" else getattr(sys.modules.get(module), "__dict__", {})
    return [(module, name) for name, value in list(members.items()) if value is cls]


def _listed(info: ClassInfo) -> Sequence[type]:
    """The classes that `isinstance` means: a class, or those of a tuple or union of them."""
    if isinstance(info, type):
        return [info]
    try:
        isinstance(None, info)
    except TypeError:
        raise TypeError(
            f"Expected a class, or a tuple of classes, got {shown(info)} ({type(info).__name__}). "
            "Pass the class of the wrapper itself."
        ) from None
    parts = info if isinstance(info, tuple) else get_args(info)
    return [cls for part in parts for cls in _listed(part)]


def _has(env: SingleEnv, name: str) -> bool:
    """Whether `get` would find the attribute, as SB3 asks; `has_wrapper_attr` may say otherwise."""
    try:
        env.get_wrapper_attr(name)
    except AttributeError:
        return False
    return True


_COMMANDS: dict[str, Callable[..., Any]] = {
    "step": step_env,
    "reset": lambda env, kwargs: reset_result(env.reset(**kwargs)),
    "has": _has,
    "get": lambda env, name: env.get_wrapper_attr(name),
    "set": setattr,
    "write": lambda env, name, value: env.set_wrapper_attr(name, value),
    "call": _call,
    "read": _read,
    "is_method": lambda env, name: callable(env.get_wrapper_attr(name)),
    "is_wrapped": lambda env, wrapper_class: wrapper_class.is_around(env),
}


def run_command(env: SingleEnv, name: str, *args: Any) -> Any:
    """Run the command of that name."""
    return _COMMANDS[name](env, *args)
