"""Speak to single workers of an `AsyncVectorEnv`, which itself only ever speaks to all of them.

The protocol (`_async_worker`) is the same in Gymnasium 1.1 to 1.4: a command and its data go down
a pipe; `(payload, True)` comes back, or `(None, False)` with the exception on `error_queue`, after
which that worker is gone. A worker that is gone has None for a pipe, here as in Gymnasium.
"""

from __future__ import annotations

import io
import pickle
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
from gymnasium.vector import AutoresetMode
from gymnasium.vector.async_vector_env import AsyncState

from sb3compat.errors import WorkerError, WorkerTimeoutError

# How long an exception may take from a worker's queue to here, once the worker has reported it.
_ERROR_SECONDS = 5.0


def is_broken(env: Any) -> bool:
    """Whether a worker is gone."""
    return any(pipe is None for pipe in env.parent_pipes)


def check_ready(env: Any) -> None:
    """Refuse to speak to workers that are gone, or while an answer is due.

    That answer would be taken for the answer to this.
    """
    if is_broken(env):
        raise WorkerError(
            f"Expected {env} with all of its workers, but an earlier error has stopped some. Close "
            "this environment and build a new one."
        )
    if env._state != AsyncState.DEFAULT:
        raise RuntimeError(
            f"Expected {env} with no call under way, but it is waiting for a pending "
            f"{env._state.value!r}. Finish that first."
        )


def send(env: Any, messages: Mapping[int, tuple[str, Any]]) -> None:
    """Send each row its message.

    Raises:
        WorkerError: If a worker turns out to be gone.
    """
    check_ready(env)
    sent = 0
    try:
        for i, message in messages.items():
            env.parent_pipes[i].send(message)
            sent += 1
    except BaseException as error:
        # Those that have got theirs will answer, and nobody will listen.
        _lose(env, list(messages)[: sent + 1])
        if isinstance(error, OSError):
            raise _died(i) from error
        raise


def receive(env: Any, rows: Iterable[int], timeout: float | None = None) -> list[Any]:
    """The answers of some rows, in that order.

    Every answer that comes is taken, also after one that is an error, so that none is left to be
    taken for the next one.

    Args:
        env: The vector environment.
        rows: The rows.
        timeout: How many seconds to wait for all of them; None for ever.

    Raises:
        WorkerTimeoutError: If they take longer.
        WorkerError: If a worker has died, or its exception cannot be pickled.
        Exception: What a sub-environment has raised, with the worker's traceback as its cause;
            that of the first row where several have, as `DummyVecEnv` would have met it.
    """
    rows = list(rows)
    deadline = None if timeout is None else time.monotonic() + timeout
    results: list[Any] = []
    failed: list[int] = []
    dead: dict[int, Exception] = {}
    try:
        for i in rows:
            pipe = env.parent_pipes[i]
            if deadline is not None and not pipe.poll(max(0.0, deadline - time.monotonic())):
                raise WorkerTimeoutError(
                    f"The worker process of row {i} has not answered within timeout={timeout} "
                    "seconds. Close this environment, which terminates it, and build a new one."
                )
            try:
                payload, success = pipe.recv()
            except (EOFError, OSError) as error:
                payload, success = None, True
                dead[i] = error
            results.append(payload)
            if not success:
                failed.append(i)
    except BaseException:
        _lose(env, rows[len(results) :])
        env._state = AsyncState.DEFAULT
        raise
    if failed or dead:
        env._state = AsyncState.DEFAULT
        _lose(env, [*failed, *dead])
        raised = dict(_next_error(env) for _ in failed)
        first = min([*failed, *dead])
        if first in dead:
            raise _died(first) from dead[first]
        cause, trace = raised.get(first) or next(iter(raised.values()))
        raise cause from WorkerError(f"in the worker of row {first}:\n{trace}")
    return results


def call(env: Any, name: str, args: Any, kwargs: Any, rows: Sequence[int]) -> list[Any]:
    """Have the environments of some rows call their method `name`, in parallel."""
    chosen = list(dict.fromkeys(rows))
    send(env, dict.fromkeys(chosen, ("_call", (name, args, kwargs))))
    results = dict(zip(chosen, receive(env, chosen), strict=True))
    return [results[i] for i in rows]


def reset(
    env: Any,
    rows: Sequence[int],
    kwargs: Sequence[dict[str, Any]],
    timeout: float | None = None,
) -> list[tuple[Any, Any]]:
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
    send(env, dict.fromkeys(first, ("step", None)))
    receive(env, first, timeout)
    send(env, messages)
    return [(answer[0], answer[-1]) for answer in receive(env, rows, timeout)]


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


def close(env: Any) -> None:
    """Close the environment; where a worker is gone or busy, by terminating them all."""
    if env.closed:
        return
    terminate = is_broken(env) or env._state != AsyncState.DEFAULT
    env._state = AsyncState.DEFAULT
    env.close(terminate=terminate)


def _lose(env: Any, rows: Iterable[int]) -> None:
    for i in rows:
        if env.parent_pipes[i] is not None:
            env.parent_pipes[i].close()
            env.parent_pipes[i] = None


def _died(row: int) -> WorkerError:
    return WorkerError(
        f"The worker process of row {row} has died without an answer. Close this environment and "
        "build a new one."
    )


def _next_error(env: Any) -> tuple[int, tuple[BaseException, str]]:
    """The row of a worker that has failed, its exception and its traceback.

    Not by the queue's own `get`: that waits for ever where a worker could not pickle its exception,
    and raises an unrelated `TypeError` for an exception class that takes several arguments.
    """
    queue = env.error_queue
    with queue._rlock:
        data = queue._reader.recv_bytes() if queue._reader.poll(_ERROR_SECONDS) else None
    if data is None:
        lost = WorkerError(
            "A sub-environment has raised an exception that cannot be pickled, such as one of a "
            "class defined inside a function. Its traceback is in the worker's own output."
        )
        return -1, (lost, "no traceback: the exception could not be pickled")
    queue._sem.release()
    row, kind, value, trace = ExceptionUnpickler(io.BytesIO(data)).load()
    return row, (value if isinstance(value, BaseException) else kind(value), trace)


# The implementation in Python, as that in C has nothing to override.
_Unpickler: Any = pickle._Unpickler


class ExceptionUnpickler(_Unpickler):  # type: ignore[misc]
    """Builds exceptions without their `__init__`, whose arguments pickle does not know."""

    dispatch: ClassVar[dict[int, Any]] = dict(_Unpickler.dispatch)

    def load_reduce(self) -> None:
        """What `pickle` does with the opcode REDUCE, but for exceptions."""
        args = self.stack.pop()
        function = self.stack[-1]
        if isinstance(function, type) and issubclass(function, BaseException):
            error = function.__new__(function, *args)
            error.args = args
            self.stack[-1] = error
        else:
            self.stack[-1] = function(*args)

    dispatch[pickle.REDUCE[0]] = load_reduce


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
