"""Questions to the workers of an `AsyncVectorEnv` for which Gymnasium has no command."""

from __future__ import annotations

from typing import Any, get_args

import gymnasium as gym

from sb3compat._convert.types import ClassInfo, Value
from sb3compat._ipc.exceptions import mend_queue
from sb3compat._ipc.worker_locals import env_of_worker, local_of_worker


class Question:
    """Becomes, when a worker unpickles it, the name of an attribute that is the answer.

    Gymnasium's worker has no command for these questions, and its `_call` reaches methods of the
    environment only. Unpickling runs inside the worker, whose frame holds what is asked for.
    """

    def __init__(self, kind: str, *arguments: Value) -> None:
        self.kind, self.arguments = kind, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return _answer, (self.kind, *self.arguments)


def _answer(kind: str, *arguments: Any) -> str:
    """The name of an attribute that the sub-environment has for yes, and has not for no."""
    if kind == "autoreset":
        yes = bool(local_of_worker("autoreset"))
    elif kind == "errors":
        mend_queue(local_of_worker("error_queue"))
        yes = True
    else:
        yes = has_wrapper(env_of_worker(), *arguments)
    return "unwrapped" if yes else "_sb3compat_no"


def has_wrapper(env: gym.Env[Any, Any], *names: tuple[str, str]) -> bool:
    """Whether a wrapper of one of these classes, or one that stands for it, is around `env`."""
    while isinstance(env, gym.Wrapper):
        known = {*map(class_name, type(env).__mro__), getattr(type(env), "stands_for", None)}
        if not known.isdisjoint(names):
            return True
        env = env.env
    return False


def classes_of(info: ClassInfo) -> list[type]:
    """The classes that `isinstance` means by its second argument: a class, a tuple or a union."""
    if isinstance(info, type):
        return [info]
    isinstance(None, info)  # raises the TypeError for anything else
    parts = info if isinstance(info, tuple) else get_args(info)
    return [cls for part in parts for cls in classes_of(part)]


def class_name(cls: type) -> tuple[str, str]:
    """The module of a class, and its name there."""
    return cls.__module__, cls.__qualname__
