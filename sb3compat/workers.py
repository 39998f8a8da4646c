"""Speak to single workers of an `AsyncVectorEnv`, which itself only ever speaks to all of them.

The protocol (`_async_worker`) is the same in Gymnasium 1.1 to 1.4: a command and its data go down
a pipe; `(payload, True)` comes back, or `(None, False)` with the exception on `error_queue`, after
which that worker is gone.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
from gymnasium.vector import AutoresetMode
from gymnasium.vector.async_vector_env import AsyncState


def check_idle(env: Any) -> None:
    """Refuse to speak while an answer is due, which would be taken for the answer to this."""
    if env._state != AsyncState.DEFAULT:
        raise RuntimeError(
            f"Expected {env} with no call under way, but it is waiting for a pending "
            f"{env._state.value!r}. Finish that first."
        )


def call(env: Any, name: str, args: Any, kwargs: Any, rows: Sequence[int]) -> list[Any]:
    """Have the environments of some rows call their method `name`, in parallel."""
    check_idle(env)
    chosen = list(dict.fromkeys(rows))
    for i in chosen:
        env.parent_pipes[i].send(("_call", (name, args, kwargs)))
    results = {}
    successes = [True] * env.num_envs
    for i in chosen:
        results[i], successes[i] = env.parent_pipes[i].recv()
    env._raise_if_errors(successes)
    return [results[i] for i in rows]


def reset(env: Any, rows: Sequence[int], kwargs: Sequence[dict[str, Any]]) -> list[tuple[Any, Any]]:
    """Reset some rows, each with arguments of its own; with none, as its autoreset would.

    Where a row's autoreset would linger, it is let happen; that is the reset, if it was to be one
    without arguments.
    """
    lingering = lingering_autoresets(env, rows)
    messages: dict[int, tuple[str, Any]] = {}
    for i, arguments in zip(rows, kwargs, strict=True):
        if i in lingering and not arguments:
            messages[i] = ("step", None)
        else:
            messages[i] = ("reset", arguments)
    first = [i for i in lingering if messages[i][0] == "reset"]
    _exchange(env, dict.fromkeys(first, ("step", None)))
    answers = _exchange(env, messages)
    return [(answers[i][0], answers[i][-1]) for i in rows]


def lingering_autoresets(env: Any, rows: Sequence[int]) -> list[int]:
    """The rows whose pending autoreset a reset would not clear, by an upstream bug.

    As of Gymnasium 1.4, the worker clears that flag on a reset only with shared memory; without,
    the step after the reset resets the row once more, and its action is lost.
    """
    if env.shared_memory or env.autoreset_mode != AutoresetMode.NEXT_STEP:
        return []
    answers = call(env, "has_wrapper_attr", (_Question("autoreset"),), {}, rows)
    return [i for i, pending in zip(rows, answers, strict=True) if pending]


def is_wrapped(env: Any, wrapper_class: type, rows: Sequence[int]) -> list[bool]:
    """Whether the environments of some rows are wrapped in that class.

    The class goes by its name: unpickling it would import its module, which for SB3's `Monitor`
    means torch in every worker, and a class of `__main__` would not arrive as the same object.
    """
    question = _Question("is_wrapped", _class_name(wrapper_class))
    return call(env, "has_wrapper_attr", (question,), {}, rows)


def _exchange(env: Any, messages: dict[int, tuple[str, Any]]) -> dict[int, Any]:
    check_idle(env)
    for i, message in messages.items():
        env.parent_pipes[i].send(message)
    answers = {}
    successes = [True] * env.num_envs
    for i in messages:
        answers[i], successes[i] = env.parent_pipes[i].recv()
    env._raise_if_errors(successes)
    return answers


class _Question:
    """Becomes, when a worker unpickles it, the name of an attribute that is the answer.

    Gymnasium's worker has no command for these questions, and its `_call` reaches methods of the
    environment only. Unpickling runs inside the worker, whose frame holds what is asked for.
    """

    def __init__(self, kind: str, *arguments: Any) -> None:
        self.kind, self.arguments = kind, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return _answer, (self.kind, *self.arguments)


def _answer(kind: str, *arguments: Any) -> str:
    frame = sys._getframe()
    while not isinstance(frame.f_locals.get("env"), gym.Env):
        assert frame.f_back is not None
        frame = frame.f_back
    if kind == "autoreset":
        # A custom worker without this variable has no autoreset pending that we know of.
        yes = bool(frame.f_locals.get("autoreset", False))
    else:
        yes = _has_wrapper(frame.f_locals["env"], *arguments)
    return "unwrapped" if yes else "_sb3compat_no"


def _has_wrapper(env: Any, name: tuple[str, str]) -> bool:
    while isinstance(env, gym.Wrapper):
        if name in map(_class_name, type(env).__mro__):
            return True
        env = env.env
    return False


def _class_name(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__
