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
from copy import deepcopy
from multiprocessing.reduction import ForkingPickler
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.async_vector_env import AsyncState
from gymnasium.vector.utils import concatenate, iterate

from sb3compat.errors import WorkerError, WorkerTimeoutError

# How long exceptions may take from the workers' queue to here, once they have been reported.
_ERROR_SECONDS = 5.0
# How long workers may take to answer once another has died: what they wait for may never come.
_DEAD_SECONDS = 5.0


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


def send(env: Any, messages: Mapping[int, tuple[str, Any] | bytes]) -> None:
    """Send each row its message, which may be pickled already.

    Raises:
        WorkerError: If a worker turns out to be gone.
    """
    check_ready(env)
    sent = 0
    try:
        for i, message in messages.items():
            if isinstance(message, bytes):
                env.parent_pipes[i].send_bytes(message)
            else:
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
            payload, success = None, True
            try:
                if deadline is None or pipe.poll(max(0.0, deadline - time.monotonic())):
                    payload, success = pipe.recv()
                elif dead:
                    dead[i] = EOFError("no answer since another worker has died")
                else:
                    raise WorkerTimeoutError(
                        f"The worker process of row {i} has not answered within timeout={timeout} "
                        "seconds. Close this environment, which terminates it, and build a new one."
                    )
            except TimeoutError:  # an OSError: that above, or one of the user's signal handler
                raise
            except (EOFError, OSError) as error:
                dead[i] = error
                grace = time.monotonic() + _DEAD_SECONDS
                deadline = grace if deadline is None else min(deadline, grace)
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
        until = time.monotonic() + _ERROR_SECONDS
        raised = dict(_next_error(env, until) for _ in failed)
        first = min([*failed, *dead])
        if first in dead:
            raise _died(first) from dead[first]
        cause, trace = raised.get(first) or next(iter(raised.values()))
        raise cause from WorkerError(f"in the worker of row {first}:\n{trace}")
    return results


def call(env: Any, name: str, args: Any, kwargs: Any, rows: Sequence[int]) -> list[Any]:
    """Have the environments of some rows call their method `name`, in parallel."""
    chosen = list(dict.fromkeys(rows))
    check_ready(env)
    # What the user has passed may not be picklable; that is to be known before a worker is told.
    message = bytes(ForkingPickler.dumps(("_call", (name, args, kwargs))))
    send(env, dict.fromkeys(chosen, message))
    results = dict(zip(chosen, receive(env, chosen), strict=True))
    return [results[i] for i in rows]


def start_step(env: Any, actions: Any) -> None:
    """What `AsyncVectorEnv.step_async` does."""
    rows = enumerate(iterate(env.action_space, actions))
    send(env, {i: ("step", action) for i, action in rows})
    env._state = AsyncState.WAITING_STEP


def finish_step(env: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
    """What `AsyncVectorEnv.step_wait` does, but that errors arrive as they were raised."""
    results = receive(env, range(env.num_envs))
    env._state = AsyncState.DEFAULT
    observations, rewards, terminations, truncations, given = zip(*results, strict=True)
    infos: dict[str, Any] = {}
    for i, info in enumerate(given):
        infos = env._add_info(infos, info, i)
    if not env.shared_memory:
        env.observations = concatenate(env.single_observation_space, observations, env.observations)
    return (
        deepcopy(env.observations) if env.copy else env.observations,
        np.array(rewards, np.float64),
        np.array(terminations, np.bool_),
        np.array(truncations, np.bool_),
        infos,
    )


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
    means torch in every worker, and a class of `__main__` would not arrive as the same object. For
    the same reason a wrapper may name a class that it `stands_for`.
    """
    question = _Question("is_wrapped", _class_name(wrapper_class))
    return call(env, "has_wrapper_attr", (question,), {}, rows)


def close(env: Any) -> None:
    """Close the environment; where a worker is gone or busy, by terminating them all."""
    if env.closed:
        return
    terminate = is_broken(env) or env._state != AsyncState.DEFAULT
    env._state = AsyncState.DEFAULT
    try:
        env.close(terminate=terminate)
    except (EOFError, OSError):  # one has died since
        env.close(terminate=True)


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


def _next_error(env: Any, until: float) -> tuple[int, tuple[BaseException, str]]:
    """The row of a worker that has failed, its exception and its traceback.

    Not by the queue's own `get`: that waits for ever where a worker could not pickle its exception,
    and raises an unrelated `TypeError` for an exception class that takes several arguments.
    """
    queue = env.error_queue
    with queue._rlock:
        there = queue._reader.poll(max(0.0, until - time.monotonic()))
        data = queue._reader.recv_bytes() if there else None
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
        if name == getattr(type(env), "stands_for", None):
            return True
        env = env.env
    return False


def _class_name(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__
