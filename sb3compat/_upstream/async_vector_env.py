"""Speak to single workers of an `AsyncVectorEnv`, which itself only ever speaks to all of them.

The protocol (`_async_worker`) is the same in Gymnasium 1.1 to 1.4: a command and its data go down
a pipe; `(payload, True)` comes back, or `(None, False)` with the exception on `error_queue`, after
which that worker is gone. A worker that is gone has None for a pipe, here as in Gymnasium.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, get_args

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.async_vector_env import AsyncState
from gymnasium.vector.utils import concatenate, iterate

from sb3compat._convert.types import (
    Action,
    AnyAsync,
    ClassInfo,
    ConnectionLike,
    Info,
    Kwargs,
    Observation,
    Value,
    VectorStepResult,
)
from sb3compat._upstream.exceptions import Raised, mend_queue, next_raised, reraise
from sb3compat._upstream.pipes import (
    Exchange,
    Line,
    died,
    end_processes,
    lines_of,
    pickled,
)
from sb3compat._upstream.private import private
from sb3compat._upstream.sync_vector_env import add_info
from sb3compat._upstream.worker_locals import env_of_worker, local_of_worker
from sb3compat.errors import CallOrderError, WorkerError, WorkerTimeoutError

# How long exceptions may take from the workers' queue to here, once they have been reported.
_ERROR_SECONDS = 5.0


def is_broken(env: AnyAsync) -> bool:
    """Whether a worker is gone."""
    return any(pipe is None for pipe in private(env, "parent_pipes"))


def is_busy(env: AnyAsync) -> bool:
    """Whether the workers owe the answer to an earlier call."""
    return bool(private(env, "_state") != AsyncState.DEFAULT)


def is_stepping(env: AnyAsync) -> bool:
    """Whether the workers owe the answer to a step."""
    return bool(private(env, "_state") == AsyncState.WAITING_STEP)


def note_step(env: AnyAsync, *, under_way: bool) -> None:
    """Note in the environment whether a step is under way; its `close` goes by that."""
    private(env, "_state")
    env._state = AsyncState.WAITING_STEP if under_way else AsyncState.DEFAULT


def shared_batch(env: AnyAsync) -> Observation:
    """The environment's own batch of observations; with shared memory, the workers write it."""
    return private(env, "observations")


def shares_memory(env: AnyAsync) -> bool:
    """Whether the workers write observations into shared memory, or send them.

    They take shared memory of no length for none: that of a `Box` without a number, or of a `Dict`
    or `Tuple` without a part.
    """
    batch = shared_batch(env)
    return (
        bool(env.shared_memory)
        and (batch.size if isinstance(batch, np.ndarray) else len(batch)) > 0
    )


def check_ready(env: AnyAsync) -> None:
    """Refuse to speak to workers that are gone, or while an answer is due.

    That answer would be taken for the answer to this.
    """
    if is_broken(env):
        raise WorkerError(
            f"Expected {env} with all of its workers, but an earlier error has stopped some. Close "
            "this environment and build a new one."
        )
    if is_busy(env):
        raise CallOrderError(
            f"Expected {env} with no call under way, but it is waiting for a pending "
            f"{env._state.value!r}. Finish that first."
        )


def send(env: AnyAsync, messages: Mapping[int, tuple[str, Value] | bytes]) -> None:
    """Send each row its message, which may be pickled already.

    Raises:
        WorkerError: If a worker turns out to be gone.
    """
    check_ready(env)
    data = {
        i: message if isinstance(message, bytes) else pickled(message)
        for i, message in messages.items()
    }
    exchange = Exchange(_lines(env, data))
    try:
        exchange.send(data)
    except BaseException:
        # Those that have got theirs will answer, and nobody will listen.
        _lose(env, exchange.owed)
        raise
    if exchange.dead:
        _lose(env, [*exchange.owed, *exchange.dead])
        row = min(exchange.dead)
        raise died(row) from exchange.dead[row]


def receive(env: AnyAsync, rows: Iterable[int], timeout: float | None = None) -> list[Any]:
    """The answers of some rows, in that order.

    Args:
        env: The vector environment.
        rows: The rows.
        timeout: How many seconds to wait for all of them; None for ever.

    Raises:
        WorkerTimeoutError: If they take longer.
        WorkerError: If a worker has died, or its exception cannot be pickled.
        Exception: What a sub-environment has raised, with the worker's traceback as its cause;
            if several have, that of the first row, as in `DummyVecEnv`.
    """
    rows = list(rows)
    exchange = Exchange(_lines(env, rows))
    exchange.owed.update(dict.fromkeys(rows))
    try:
        exchange.receive(timeout)
    except BaseException:
        _give_up(env, exchange.owed)
        raise
    failed = [i for i, (_, success) in exchange.answers.items() if not success]
    if not (failed or exchange.dead or exchange.owed):
        return [exchange.answers[i][0] for i in rows]
    _give_up(env, [*failed, *exchange.dead, *exchange.owed])
    raised = _collect_raised(env, len(failed))
    if exchange.dead and min(exchange.dead) < min([*failed, env.num_envs]):
        row = min(exchange.dead)
        raise died(row) from exchange.dead[row]
    if failed:
        reraise(min(failed), _of_row(min(failed), raised))
    row = min(exchange.owed)
    raise WorkerTimeoutError(
        f"The worker process of row {row} has not answered within timeout={timeout} seconds. "
        "Close this environment, which terminates it, and build a new one."
    )


def call(env: AnyAsync, name: str, args: Value, kwargs: Kwargs, rows: Sequence[int]) -> list[Any]:
    """Have the environments of some rows call their method `name`, in parallel."""
    chosen = list(dict.fromkeys(rows))
    message = pickled(("_call", (name, args, kwargs)))
    send(env, dict.fromkeys(chosen, message))
    results = dict(zip(chosen, receive(env, chosen), strict=True))
    return [results[i] for i in rows]


def start_step(env: AnyAsync, actions: Action) -> None:
    """What `AsyncVectorEnv.step_async` does."""
    rows = enumerate(iterate(env.action_space, actions))
    send(env, {i: ("step", action) for i, action in rows})
    note_step(env, under_way=True)


def finish_step(env: AnyAsync) -> VectorStepResult:
    """What `AsyncVectorEnv.step_wait` does, but that errors arrive as they were raised."""
    results = receive(env, range(env.num_envs))
    note_step(env, under_way=False)
    observations, rewards, terminations, truncations, given = zip(*results, strict=True)
    infos: Info = {}
    for i, info in enumerate(given):
        infos = add_info(env, infos, info, i)
    batch = shared_batch(env)
    if not shares_memory(env):
        batch = env.observations = concatenate(env.single_observation_space, observations, batch)
    return (
        deepcopy(batch) if env.copy else batch,
        np.array(rewards, np.float64),
        np.array(terminations, np.bool_),
        np.array(truncations, np.bool_),
        infos,
    )


def reset(
    env: AnyAsync,
    rows: Sequence[int],
    kwargs: Sequence[Kwargs],
    timeout: float | None = None,
) -> list[tuple[Any, Any]]:
    """Reset some rows, each with arguments of its own; with none, as its autoreset would.

    If a reset command would leave a row's autoreset pending, the worker is first made to do that
    autoreset. For a reset without arguments, the autoreset itself is the reset.
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


def mend_errors(env: AnyAsync) -> None:
    """Let the workers send exceptions that cannot be pickled as a whole; at once, if they can."""
    if env.worker is None and not (is_broken(env) or is_busy(env)):
        call(env, "has_wrapper_attr", (_Question("errors"),), {}, range(env.num_envs))


def lingering_autoresets(env: AnyAsync, rows: Sequence[int]) -> list[int]:
    """The rows whose pending autoreset a reset would not clear, by an upstream bug.

    As of Gymnasium 1.4, the worker clears that flag on a reset only with shared memory; without,
    the step after the reset resets the row once more, and its action is lost.
    """
    return [] if shares_memory(env) else pending_autoresets(env, rows)


def pending_autoresets(env: AnyAsync, rows: Sequence[int]) -> list[int]:
    """The rows whose next step would be a reset."""
    if env.autoreset_mode != AutoresetMode.NEXT_STEP:
        return []
    answers = call(env, "has_wrapper_attr", (_Question("autoreset"),), {}, rows)
    return [i for i, pending in zip(rows, answers, strict=True) if pending]


def is_wrapped(env: AnyAsync, wrapper_class: ClassInfo, rows: Sequence[int]) -> list[bool]:
    """Whether the environments of some rows are wrapped in that class, or in one of several.

    A class goes by its name: unpickling it would import its module, which for SB3's `Monitor`
    means torch in every worker, and a class of `__main__` would not arrive as the same object. For
    the same reason a wrapper may name a class that it `stands_for`.
    """
    question = _Question("is_wrapped", *map(class_name, classes_of(wrapper_class)))
    return call(env, "has_wrapper_attr", (question,), {}, rows)


def close(env: AnyAsync) -> None:
    """Close the environment; where a worker is gone or busy, by terminating them all."""
    if env.closed:
        return
    terminate = is_broken(env) or is_busy(env)
    note_step(env, under_way=False)
    if not terminate:
        try:
            env.close()
        except (EOFError, OSError):  # one has died since
            terminate = True
    if terminate:
        # Gymnasium waits for ever for a process that survives SIGTERM.
        end_processes(private(env, "processes"))
        # `close` hands the argument on to `close_extras`.
        env.close(terminate=True)


def _lines(env: AnyAsync, rows: Iterable[int]) -> dict[int, Line]:
    return lines_of(private(env, "parent_pipes"), private(env, "processes"), rows)


def _give_up(env: AnyAsync, rows: Iterable[int]) -> None:
    """Close the pipes of workers that are gone, or whose answers nobody will wait for."""
    _lose(env, rows)
    note_step(env, under_way=False)


def _lose(env: AnyAsync, rows: Iterable[int]) -> None:
    pipes: list[ConnectionLike | None] = private(env, "parent_pipes")
    for i in rows:
        pipe = pipes[i]
        if pipe is not None:
            pipe.close()
            pipes[i] = None


def _collect_raised(env: AnyAsync, count: int) -> list[Raised]:
    """What so many workers have raised, as far as it comes in time."""
    until = time.monotonic() + _ERROR_SECONDS
    queue = private(env, "error_queue")
    raised = (next_raised(queue, until) for _ in range(count))
    return [one for one in raised if one is not None]


def _of_row(row: int, raised: list[Raised]) -> Raised | None:
    """What the worker of `row` has raised or, if that did not arrive, what another one has."""
    by_row = {one.row: one for one in raised}
    return by_row.get(row) or next(iter(raised), None)


class _Question:
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
