"""Send commands to single workers of an `AsyncVectorEnv`, whose own methods always use all workers.

The protocol (`_async_worker`) is the same in Gymnasium 1.1 to 1.4: a command and its data go down
a pipe; `(payload, True)` comes back, or `(None, False)` with the exception on `error_queue`, after
which that worker is gone. A worker that is gone has None for a pipe, here as in Gymnasium.

Outstanding answers are recorded in the environment's own pipes, see `watched_pipes`. After a call
that was interrupted, the environment can only be closed.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any, NoReturn

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.async_vector_env import AsyncState
from gymnasium.vector.utils import concatenate, iterate

from sb3compat._convert.types import (
    Action,
    AnyAsync,
    Info,
    Kwargs,
    Observation,
    VectorStepResult,
)
from sb3compat._ipc.pipes import FOREVER, Deadline, died, end_processes, pickled
from sb3compat._ipc.turn import Turn
from sb3compat._ipc.watched_pipes import Watch, WatchedPipe, watch_of
from sb3compat._ipc.worker_guard import Inside, autoreset_pending, mend_queue_of_worker
from sb3compat._upstream.private import private, set_private
from sb3compat._upstream.sync_vector_env import add_info
from sb3compat.errors import CallOrderError, WorkerError, WorkerTimeoutError, traceback_in_worker

# A command and its data, or that pickled.
Message = tuple[str, Any] | bytes

# How many seconds an exception may take through the workers' queue, once it was reported.
_ERROR_SECONDS = 5.0


def is_broken(env: AnyAsync) -> bool:
    """Whether a worker is gone, or may answer a call that was interrupted."""
    return None in private(env, "parent_pipes") or watch(env).is_lost(noted=_has_noted_call(env))


def is_stepping(env: AnyAsync) -> bool:
    """Whether the answers to a step, of the user or of this package, are outstanding."""
    return private(env, "_state") == AsyncState.WAITING_STEP and not is_broken(env)


def _has_noted_call(env: AnyAsync) -> bool:
    return bool(private(env, "_state") != AsyncState.DEFAULT)


def shared_batch(env: AnyAsync) -> Observation:
    """The environment's own batch of observations; with shared memory, the workers write it."""
    return private(env, "observations")


def shares_memory(env: AnyAsync) -> bool:
    """Whether the workers write observations into shared memory, or send them.

    They treat empty shared memory as none: that of a `Box` without elements, or of an empty `Dict`
    or `Tuple`.
    """
    batch = shared_batch(env)
    return (
        bool(env.shared_memory)
        and (batch.size if isinstance(batch, np.ndarray) else len(batch)) > 0
    )


def watch(env: AnyAsync) -> Watch:
    """The outstanding answers, to this package and to the environment's own methods."""
    pipes: list[Any] = private(env, "parent_pipes")
    if type(pipes[0]) is not WatchedPipe:
        noted = _has_noted_call(env)
        pipes[:] = watch_of(pipes, private(env, "processes"), noted=noted).pipes
    found: Watch = pipes[0].watch
    return found


def whole_call(env: AnyAsync, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a function that calls the environment's own methods, which send and receive.

    Raises:
        CallOrderError: If another call is under way.
        WorkerError: If a worker is gone, or an earlier call has not come to its end.
    """
    with _turn(env):
        _check_ready(env)
        return watch(env).call(function, *args, **kwargs)


def _turn(env: AnyAsync) -> Turn:
    """Lets one call at a time speak to the workers.

    Raises:
        WorkerError: If a worker is gone.
    """
    if None in private(env, "parent_pipes"):
        _check_whole(env)
    return watch(env).turn


def check_turn(env: AnyAsync) -> None:
    """Raise an error if another call is on the stack.

    Raises:
        CallOrderError: If one is.
        WorkerError: If a worker is gone.
    """
    _turn(env).check()


def _check_whole(env: AnyAsync) -> None:
    """Raise an error if a worker is gone, or if an answer of an interrupted call is outstanding.

    Raises:
        WorkerError: If one is.
    """
    if is_broken(env):
        raise WorkerError(
            f"Expected {env} with all of its workers, but an earlier error or interrupt has "
            "stopped some of them, or left an answer outstanding. Close this environment and "
            "build a new one."
        )


def check_ready(env: AnyAsync) -> None:
    """Raise an error if a worker is gone, or if an answer is outstanding.

    An outstanding answer would be mistaken for the answer to the next command.

    Raises:
        CallOrderError: If another call is under way.
        WorkerError: If a worker is gone, or an earlier call has not come to its end.
    """
    check_turn(env)
    _check_ready(env)


def _check_ready(env: AnyAsync) -> None:
    _check_whole(env)
    if _has_noted_call(env):
        raise CallOrderError(
            f"Expected {env} with no call under way, but it is waiting for a pending "
            f"{private(env, '_state').value!r}. Finish that first."
        )


def ask(env: AnyAsync, messages: Mapping[int, Message], timeout: Deadline = FOREVER) -> list[Any]:
    """Send a message to each of some rows, and return their answers in the same order.

    Args:
        env: The vector environment.
        messages: The messages by row, pickled already or not.
        timeout: The time limit for sending and receiving together.

    Raises:
        WorkerTimeoutError: If it takes longer.
        WorkerError: If a worker is gone or has died, or its exception cannot be pickled.
        Exception: What a sub-environment has raised, with the worker's traceback as its cause;
            if several have, that of the first row, as in `DummyVecEnv`.
    """
    with _turn(env):
        _send(env, messages, timeout)
        return _received(env, messages, timeout)


def send_step(env: AnyAsync, messages: Mapping[int, Message], timeout: Deadline = FOREVER) -> None:
    """Send every row its step; `receive_step` takes the answers.

    Raises:
        WorkerTimeoutError: If a worker does not read its message in that time.
        WorkerError: If a worker turns out to be gone.
    """
    with _turn(env):
        _send(env, messages, timeout)
        exchange = watch(env).exchange
        if exchange.dead or exchange.unsent:
            _fail(env, [], timeout)
        # The environment itself has to know that a step is under way, for its `close` for instance.
        set_private(env, "_state", AsyncState.WAITING_STEP)


def receive_step(env: AnyAsync, timeout: Deadline) -> list[Any]:
    """The answers of all rows to a step; the errors are those of `ask`."""
    with _turn(env):
        _check_whole(env)
        set_private(env, "_state", AsyncState.DEFAULT)
        return _received(env, range(env.num_envs), timeout)


def _send(env: AnyAsync, messages: Mapping[int, Message], timeout: Deadline) -> None:
    _check_ready(env)
    data = {
        row: message if isinstance(message, bytes) else pickled(message)
        for row, message in messages.items()
    }
    exchange = watch(env).exchange
    exchange.drop_answers()
    exchange.send(data, timeout.left())


def _received(env: AnyAsync, rows: Iterable[int], timeout: Deadline) -> list[Any]:
    """What these rows answer."""
    exchange = watch(env).exchange
    exchange.receive(timeout.left())
    answers = exchange.taken()
    failed = [row for row, (_, success) in answers.items() if not success]
    if failed or exchange.dead or exchange.owed:
        _fail(env, failed, timeout)
    return [answers[row][0] for row in rows]


def _fail(env: AnyAsync, failed: Sequence[int], timeout: Deadline) -> NoReturn:
    """Raise the exception of a worker, or an error for workers that have died or are late."""
    exchange, pipes = watch(env).exchange, private(env, "parent_pipes")
    for row in {*failed, *exchange.dead, *exchange.owed}:
        pipes[row].close()  # lets the worker end, as Gymnasium does not wait for it
        pipes[row] = None
    if exchange.dead and min(exchange.dead) < min([*failed, env.num_envs]):
        row, error = min(exchange.dead.items())
        raise died(row, error) from error
    if failed:
        _reraise(env, failed)
    raise WorkerTimeoutError(
        f"The worker process of row {min(exchange.owed)} has not answered within "
        f"timeout={timeout.timeout} seconds. Close this environment, which terminates it, and "
        "build a new one."
    )


def _reraise(env: AnyAsync, failed: Sequence[int]) -> NoReturn:
    """Raise the exception of the first of these workers or, if it does not arrive, another one's.

    Raises:
        WorkerError: If none arrives in time, or none can be unpickled.
    """
    first, queue = min(failed), private(env, "error_queue")
    raised: dict[int, tuple[BaseException, str]] = {}
    try:
        for _ in failed:
            row, kind, error, trace = queue.get(timeout=_ERROR_SECONDS)
            raised[row] = error if isinstance(error, BaseException) else kind(error), trace
    except Exception as failure:  # Empty; or of a custom worker, whose queue was not fixed
        if not raised:
            raise WorkerError(
                f"The sub-environment of row {first} has raised an exception that cannot be "
                "pickled. Its traceback is in the worker's own output."
            ) from failure
    error, trace = raised.get(first, next(iter(raised.values())))
    raise error from traceback_in_worker(f"row {first}", trace)


def ask_inside(
    env: AnyAsync, rows: Sequence[int], what: Inside, timeout: Deadline = FOREVER
) -> list[bool]:
    """Whether the environments of some rows have the attribute that is named in their workers."""
    message = pickled(("_call", ("has_wrapper_attr", (what,), {})))
    return ask(env, dict.fromkeys(rows, message), timeout)


def step(env: AnyAsync, actions: Action) -> VectorStepResult:
    """Like `AsyncVectorEnv.step`, except that exceptions arrive as they were raised.

    The environment itself does not record that a step is in progress, because the step could not be
    finished after an interrupt.
    """
    rows = enumerate(iterate(env.action_space, actions))
    results = ask(env, {i: ("step", action) for i, action in rows})
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
    if env.worker is None and not (is_broken(env) or _has_noted_call(env)):
        ask_inside(env, range(env.num_envs), Inside(mend_queue_of_worker))


def lingering_autoresets(env: AnyAsync, rows: Sequence[int], timeout: Deadline) -> list[int]:
    """The rows whose pending autoreset a reset would not clear, by an upstream bug.

    As of Gymnasium 1.4, the worker clears that flag on a reset only with shared memory; without,
    the step after the reset resets the row once more, and its action is lost.
    """
    if shares_memory(env) or env.autoreset_mode != AutoresetMode.NEXT_STEP:
        return []
    answers = ask_inside(env, rows, Inside(autoreset_pending), timeout)
    return [i for i, pending in zip(rows, answers, strict=True) if pending]


def close(env: AnyAsync) -> None:
    """Close the environment; if a worker is gone or busy, terminate all workers."""
    if env.closed:
        return
    terminate = is_broken(env) or _has_noted_call(env)
    set_private(env, "_state", AsyncState.DEFAULT)
    if terminate:
        _terminate(env)
        return
    try:
        env.close()
    except OSError as error:
        # An interrupted close may have closed a pipe without noting that.
        if error.errno != errno.EBADF:
            raise
        _terminate(env)


def _terminate(env: AnyAsync) -> None:
    # Gymnasium waits forever for a process that survives SIGTERM.
    end_processes(private(env, "processes"))
    for pipe in private(env, "parent_pipes"):
        with suppress(OSError):
            if pipe is not None:
                pipe.close()
    # `close` hands the argument on to `close_extras`.
    env.close(terminate=True)
