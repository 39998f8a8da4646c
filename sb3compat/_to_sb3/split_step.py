"""Environments whose `step` starts a step and waits for it, by two methods of their own.

An exception may come anywhere in between, from a signal handler for instance. What is still to come
is known at each point, so that no later call gets it: see `Halves`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, Protocol
from weakref import WeakSet

from gymnasium.vector import AsyncVectorEnv

from sb3compat._convert.types import Action, AnyVectorEnv, Value, VectorStepResult
from sb3compat._ipc import async_vector_env, unfinished
from sb3compat._upstream.inherited import changed
from sb3compat._upstream.private import private
from sb3compat._upstream.sync_vector_env import ADDS_INFO

# The classes whose `step` calls `send` and `recv` and does nothing else, by qualified name.
CLASSES = ("ale_py.vector_env.AtariVectorEnv", "envpool.python.envpool.EnvPoolMixin")

Function = Callable[..., Any]

# Environments of these classes in which a call has come to its end.
_reset_once: WeakSet[Any] = WeakSet()


class Halves(Protocol):
    """What starts and what finishes a step."""

    @property
    def started(self) -> bool:
        """Whether a step was started here and its results have not been taken."""

    def start(self, actions: Action) -> None:
        """Start a step."""

    def finish(self) -> VectorStepResult:
        """Wait for the step, and take its results."""


class AsyncHalves:
    """Those of an `AsyncVectorEnv`, which notes in itself whether a step is under way."""

    def __init__(self, env: Value) -> None:
        self._env = env
        self._own = False

    @property
    def started(self) -> bool:
        """Whether a step was started here and its results have not been taken."""
        under_way = async_vector_env.is_stepping(self._env) or async_vector_env.is_broken(self._env)
        return self._own and under_way

    def start(self, actions: Action) -> None:
        """Start a step."""
        async_vector_env.check_ready(self._env)
        self._own = True
        async_vector_env.start_step(self._env, actions)

    def finish(self) -> VectorStepResult:
        """Wait for the step, and take its results."""
        result = async_vector_env.finish_step(self._env)
        self._own = False
        return result


class NativeHalves:
    """Those of an environment that steps its rows in threads.

    Args:
        env: The environment.
        send: Its method that starts a step.
        take: The compiled function that waits for the step and takes its results.
        convert: What makes of them what `step` returns.
    """

    def __init__(self, env: Value, send: Function, take: Function, convert: Function) -> None:
        self._env = env
        self._send, self._take, self._convert = send, take, convert
        self._started = False
        # The results, from when they have been taken.
        self._taken: list[Any] = []

    @property
    def started(self) -> bool:
        """Whether a step was started here and its results have not been taken."""
        return self._started and not self._taken

    def start(self, actions: Action) -> None:
        """Start a step."""
        if self._env in _reset_once:
            whole_call(self._env, self._begin, actions)
        else:
            self._begin(actions)  # which the environment refuses, if it was never reset

    def _begin(self, actions: Action) -> None:
        self._taken = []
        self._send(actions)
        self._started = True

    def finish(self) -> VectorStepResult:
        """Wait for the step, and take its results."""
        # In C, where no signal handler runs between the call and the note of what it returned.
        self._taken.extend(islice(iter(self._take, None), 1))
        self._started = False
        result: VectorStepResult = self._convert(self._taken[0])
        return result


class _Receiving:
    """Stands for an EnvPool environment in its own `recv`, with results that were taken already."""

    def __init__(self, env: Value, taken: Value) -> None:
        vars(self).update(_env=env, _taken=taken)

    def _recv(self) -> Value:
        return self._taken

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_env"], name)

    def __setattr__(self, name: str, value: Value) -> None:
        setattr(self._env, name, value)


def halves_of(env: AnyVectorEnv) -> Halves | None:
    """The two halves of a step; None where `step` is one call, or not known to be two."""
    if isinstance(env, AsyncVectorEnv):
        return AsyncHalves(env) if is_async(env, "step", "step_async", "step_wait") else None
    if "step" in vars(env):
        return None
    cls = _split_class(env)
    if cls is None or getattr(type(env), "recv", None) is not private(cls, "recv"):
        return None
    send = private(env, "send")
    if hasattr(env, "ale"):
        return NativeHalves(env, send, private(env.ale, "recv"), _as_it_is)
    receive = private(cls, "recv")
    return NativeHalves(
        env, send, private(env, "_recv"), lambda taken: receive(_Receiving(env, taken))
    )


def is_async(env: AnyVectorEnv, *methods: str) -> bool:
    """Whether these methods, and what they call, are `AsyncVectorEnv`'s own, not overridden."""
    return changed(env, AsyncVectorEnv, *methods, known=ADDS_INFO) is None


def whole_call(env: AnyVectorEnv, function: Function, *args: Value, **kwargs: Value) -> Value:
    """Call a function that asks the environment for results and waits for them.

    An exception that comes out of it may leave results on their way, which a later call would get.
    Unless it is known that there are none, the environment is refused from then on.

    Raises:
        WorkerError: If an earlier call has not come to its end.
    """
    if isinstance(env, AsyncVectorEnv):
        return async_vector_env.whole_call(env, function, *args, **kwargs)
    if _split_class(env) is None:
        return function(*args, **kwargs)
    unfinished.check_finished(env)
    unfinished.note(env)
    try:
        result = function(*args, **kwargs)
    except BaseException as error:
        if _is_refusal(error):
            unfinished.forget(env)
        raise
    _reset_once.add(env)
    unfinished.forget(env)
    return result


def _split_class(env: AnyVectorEnv) -> type | None:
    """The class in `CLASSES` from which the environment has its `step`, or None."""
    cls = next(cls for cls in type(env).__mro__ if "step" in vars(cls))
    return cls if f"{cls.__module__}.{cls.__qualname__}" in CLASSES else None


def _is_refusal(error: BaseException) -> bool:
    """Whether a function of this package has raised it, before the environment was called."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")
    return isinstance(error, ValueError) and module.startswith("sb3compat.")


def _as_it_is(result: Value) -> Value:
    return result
