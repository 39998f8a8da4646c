"""Speak to single workers of an `AsyncVectorEnv`, which itself only ever speaks to all of them.

The protocol (`_async_worker`) is the same in Gymnasium 1.1 to 1.4: a command and its data go down
a pipe; `(payload, True)` comes back, or `(None, False)` with the exception on `error_queue`, after
which that worker is gone. A worker that is gone has None for a pipe, here as in Gymnasium.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

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
from sb3compat._ipc.exceptions import Raised, next_raised, reraise
from sb3compat._ipc.pipes import (
    Deadline,
    Exchange,
    died,
    end_processes,
    lines_of,
    pickled,
)
from sb3compat._ipc.ready import Line
from sb3compat._ipc.worker_questions import Question, class_name, classes_of
from sb3compat._upstream.private import private
from sb3compat._upstream.sync_vector_env import add_info
from sb3compat.errors import CallOrderError, WorkerError, WorkerTimeoutError

# A command and its data, or that pickled.
Message = tuple[str, Value] | bytes

FOR_EVER = Deadline(None)

# How long exceptions may take from the workers' queue to here, once they have been reported.
_ERROR_SECONDS = 5.0


def is_broken(env: AnyAsync) -> bool:
    """Whether a worker is gone, or may answer a call that was interrupted."""
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


def check_whole(env: AnyAsync) -> None:
    """Refuse to speak to workers that are gone.

    Raises:
        WorkerError: If one is.
    """
    if is_broken(env):
        raise WorkerError(
            f"Expected {env} with all of its workers, but an earlier error or interrupt has "
            "stopped some. Close this environment and build a new one."
        )


def check_ready(env: AnyAsync) -> None:
    """Refuse to speak to workers that are gone, or while an answer is due.

    That answer would be taken for the answer to this.
    """
    check_whole(env)
    if is_busy(env):
        raise CallOrderError(
            f"Expected {env} with no call under way, but it is waiting for a pending "
            f"{env._state.value!r}. Finish that first."
        )


def ask(env: AnyAsync, messages: Mapping[int, Message], timeout: Deadline = FOR_EVER) -> list[Any]:
    """Send some rows a message each, and take their answers, in that order.

    Args:
        env: The vector environment.
        messages: The messages by row, pickled already or not.
        timeout: The time that all of it together may take.

    Raises:
        WorkerTimeoutError: If it takes longer.
        WorkerError: If a worker is gone or has died, or its exception cannot be pickled.
        Exception: What a sub-environment has raised, with the worker's traceback as its cause;
            if several have, that of the first row, as in `DummyVecEnv`.
    """
    check_ready(env)
    data = _pickled(messages)
    lines = _take_pipes(env, data)
    exchange = Exchange(lines)
    with _closed_on_error(lines):
        exchange.send(data, timeout.left())
        exchange.receive(timeout.left())
    return _settled(env, exchange, lines, timeout)


def send_step(env: AnyAsync, messages: Mapping[int, Message], timeout: Deadline = FOR_EVER) -> None:
    """Send every row its step; `receive_step` takes the answers.

    Raises:
        WorkerTimeoutError: If a worker does not read its message in that time.
        WorkerError: If a worker turns out to be gone.
    """
    check_ready(env)
    data = _pickled(messages)
    lines = _take_pipes(env, data)
    exchange = Exchange(lines)
    with _closed_on_error(lines):
        exchange.send(data, timeout.left())
    if exchange.dead or exchange.unsent:
        _settled(env, exchange, lines, timeout)
    # The environment itself has to know that a step is under way, for its `close` for instance.
    note_step(env, under_way=True)
    _give_back(env, lines)


def receive_step(env: AnyAsync, timeout: Deadline = FOR_EVER) -> list[Any]:
    """The answers of all rows to a step; the errors are those of `ask`."""
    check_whole(env)
    lines = _take_pipes(env, range(env.num_envs))
    note_step(env, under_way=False)
    exchange = Exchange(lines)
    exchange.owed.update(dict.fromkeys(lines))
    with _closed_on_error(lines):
        exchange.receive(timeout.left())
    return _settled(env, exchange, lines, timeout)


def _settled(
    env: AnyAsync, exchange: Exchange, lines: Mapping[int, Line], timeout: Deadline
) -> list[Any]:
    """The answers, once every row has given its own; else the error to raise."""
    failed = [i for i, (_, success) in exchange.answers.items() if not success]
    if not (failed or exchange.dead or exchange.owed):
        _give_back(env, lines)
        return [exchange.answers[i][0] for i in lines]
    lost = {*failed, *exchange.dead, *exchange.owed}
    _give_back(env, {i: line for i, line in lines.items() if i not in lost})
    for i in lost:
        lines[i].pipe.close()
    raised = _collect_raised(env, len(failed))
    if exchange.dead and min(exchange.dead) < min([*failed, env.num_envs]):
        row = min(exchange.dead)
        raise died(row) from exchange.dead[row]
    if failed:
        reraise(min(failed), _of_row(min(failed), raised))
    row = min(exchange.owed)
    raise WorkerTimeoutError(
        f"The worker process of row {row} has not answered within timeout={timeout.timeout} "
        "seconds. Close this environment, which terminates it, and build a new one."
    )


def call(
    env: AnyAsync,
    name: str,
    args: Value,
    kwargs: Kwargs,
    rows: Sequence[int],
    timeout: Deadline = FOR_EVER,
) -> list[Any]:
    """Have the environments of some rows call their method `name`, in parallel."""
    chosen = list(dict.fromkeys(rows))
    message = pickled(("_call", (name, args, kwargs)))
    results = dict(zip(chosen, ask(env, dict.fromkeys(chosen, message), timeout), strict=True))
    return [results[i] for i in rows]


def start_step(env: AnyAsync, actions: Action) -> None:
    """What `AsyncVectorEnv.step_async` does."""
    rows = enumerate(iterate(env.action_space, actions))
    send_step(env, {i: ("step", action) for i, action in rows})


def finish_step(env: AnyAsync) -> VectorStepResult:
    """What `AsyncVectorEnv.step_wait` does, but that errors arrive as they were raised."""
    results = receive_step(env)
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
    deadline = Deadline(timeout)
    lingering = lingering_autoresets(env, rows, deadline)
    messages: dict[int, tuple[str, Any]] = {}
    for i, arguments in zip(rows, kwargs, strict=True):
        if i in lingering and not arguments:
            messages[i] = ("step", None)
        else:
            messages[i] = ("reset", arguments)
    first = [i for i in lingering if messages[i][0] == "reset"]
    ask(env, dict.fromkeys(first, ("step", None)), deadline)
    return [(answer[0], answer[-1]) for answer in ask(env, messages, deadline)]


def mend_errors(env: AnyAsync) -> None:
    """Let the workers send exceptions that cannot be pickled as a whole; at once, if they can."""
    if env.worker is None and not (is_broken(env) or is_busy(env)):
        call(env, "has_wrapper_attr", (Question("errors"),), {}, range(env.num_envs))


def lingering_autoresets(
    env: AnyAsync, rows: Sequence[int], timeout: Deadline = FOR_EVER
) -> list[int]:
    """The rows whose pending autoreset a reset would not clear, by an upstream bug.

    As of Gymnasium 1.4, the worker clears that flag on a reset only with shared memory; without,
    the step after the reset resets the row once more, and its action is lost.
    """
    return [] if shares_memory(env) else pending_autoresets(env, rows, timeout)


def pending_autoresets(
    env: AnyAsync, rows: Sequence[int], timeout: Deadline = FOR_EVER
) -> list[int]:
    """The rows whose next step would be a reset."""
    if env.autoreset_mode != AutoresetMode.NEXT_STEP:
        return []
    question = (Question("autoreset"),)
    answers = call(env, "has_wrapper_attr", question, {}, rows, timeout)
    return [i for i, pending in zip(rows, answers, strict=True) if pending]


def is_wrapped(env: AnyAsync, wrapper_class: ClassInfo, rows: Sequence[int]) -> list[bool]:
    """Whether the environments of some rows are wrapped in that class, or in one of several.

    A class goes by its name: unpickling it would import its module, which for SB3's `Monitor`
    means torch in every worker, and a class of `__main__` would not arrive as the same object. For
    the same reason a wrapper may name a class that it `stands_for`.
    """
    question = Question("is_wrapped", *map(class_name, classes_of(wrapper_class)))
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
        except (EOFError, OSError, WorkerError):  # one has died since
            terminate = True
    if terminate:
        # Gymnasium waits for ever for a process that survives SIGTERM.
        end_processes(private(env, "processes"))
        # `close` hands the argument on to `close_extras`.
        env.close(terminate=True)


def _pickled(messages: Mapping[int, Message]) -> dict[int, bytes]:
    return {
        i: message if isinstance(message, bytes) else pickled(message)
        for i, message in messages.items()
    }


def _take_pipes(env: AnyAsync, rows: Iterable[int]) -> dict[int, Line]:
    """The lines to some rows, which count as gone until `_give_back`.

    So an exception at any line, such as a signal handler's, leaves no worker in the environment
    that owes an answer.
    """
    pipes: list[ConnectionLike | None] = private(env, "parent_pipes")
    lines = lines_of(pipes, private(env, "processes"), rows)
    for i in lines:
        pipes[i] = None
    return lines


def _give_back(env: AnyAsync, lines: Mapping[int, Line]) -> None:
    pipes: list[ConnectionLike | None] = private(env, "parent_pipes")
    for i, line in lines.items():
        pipes[i] = line.pipe


@contextmanager
def _closed_on_error(lines: Mapping[int, Line]) -> Iterator[None]:
    """Let the workers end whose answers nobody will wait for."""
    try:
        yield
    except BaseException:
        for line in lines.values():
            line.pipe.close()
        raise


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
