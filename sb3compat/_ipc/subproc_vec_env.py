"""Commands to single workers of a `SubprocVecEnv`, and its end."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any, Protocol

from sb3compat._convert.types import Value
from sb3compat._ipc.exceptions import reraise, unpacked
from sb3compat._ipc.pipes import (
    Deadline,
    died,
    end_processes,
    is_writable,
    lost_worker,
    pickled,
)
from sb3compat._ipc.watched_pipes import Watch, can_watch, unwatched, watch_of
from sb3compat._ipc.worker_guard import NAME, Guard, Run
from sb3compat._upstream.private import private
from sb3compat._upstream.vec_env import sb3_class
from sb3compat.errors import CallOrderError, ClosedError, WorkerError

# How long a worker may take to close its sub-environment when others are lost already.
_CLOSE_SECONDS = 5.0
# How long a process may take to end once its end of a pipe is closed.
_END_SECONDS = 1.0


class SubprocLike(Protocol):
    """What we use of a `SubprocVecEnv`, private names included."""

    num_envs: int
    remotes: Any
    processes: Any
    waiting: bool
    closed: bool


class Workers:
    """The workers of a `SubprocVecEnv`, asked one by one or several at a time.

    Args:
        vec_env: The environment, with SB3's own worker.
        run: Runs a command in the worker, as `worker_guard.Guard` has it.

    Attributes:
        vec_env: The environment.

    Raises:
        WorkerError: If a worker has died.
    """

    def __init__(self, vec_env: SubprocLike, run: Run) -> None:
        self.vec_env = vec_env
        self._watch = watch(vec_env)
        self._exchange(dict.fromkeys(range(vec_env.num_envs), ("set_attr", (NAME, Guard(run)))))

    @property
    def num_envs(self) -> int:
        """The number of rows."""
        return self.vec_env.num_envs

    @property
    def lost(self) -> bool:
        """Whether a worker has died, or owes an answer that nobody waits for."""
        return is_lost(self.vec_env, self._watch)

    def ask(self, commands: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Send each row its command, then collect the results.

        Raises:
            WorkerError: If a worker has died.
            Exception: What a sub-environment has raised, with the worker's traceback as its cause;
                if several have, that of the first row, as in `DummyVecEnv`.
        """
        messages: dict[int, Any] = {
            i: ("env_method", (NAME, command, {})) for i, command in commands.items()
        }
        answers = self._exchange(messages)
        for row, (success, payload) in answers.items():
            if not success:
                reraise(row, unpacked(row, *payload))
        return {row: pickle.loads(payload) for row, (_, payload) in answers.items()}

    def _exchange(self, messages: Mapping[int, Value]) -> dict[int, Any]:
        check_ready(self.vec_env, self._watch)
        data = {row: pickled(message) for row, message in messages.items()}
        exchange = self._watch.exchange
        exchange.answers.clear()
        exchange.send(data)
        exchange.receive()
        if exchange.dead:
            raise died(min(exchange.dead)) from exchange.dead[min(exchange.dead)]
        return {row: exchange.answers.pop(row) for row in data}


def watch(base: SubprocLike) -> Watch:
    """Have the methods of the environment note what its workers owe, and notice their deaths.

    Where it is not a `SubprocVecEnv` but built like one, only deaths.
    """
    remotes, processes = private(base, "remotes"), private(base, "processes")
    made = watch_of(remotes, processes, strict=_is_subproc(base))
    if made.pipes[0] is not remotes[0] and getattr(base, "waiting", False):
        made.exchange.owed.update(dict.fromkeys(range(len(remotes))))
    base.remotes = tuple(made.pipes) if isinstance(remotes, tuple) else made.pipes
    return made


def check_ready(vec_env: SubprocLike, watch: Watch) -> None:
    """Refuse to speak to workers that are gone, or that owe an answer.

    Raises:
        ClosedError: If the environment was closed.
        CallOrderError: If the user has called `step_async`.
        WorkerError: If a worker is lost.
    """
    if _is_subproc(vec_env):
        private(vec_env, "closed")
        private(vec_env, "waiting")
    if getattr(vec_env, "closed", False):
        raise ClosedError(f"Expected an open environment, but {vec_env} was closed.")
    if is_stepping(vec_env, watch):
        raise CallOrderError(
            f"Expected {vec_env} with no step under way, but step_async() was called. "
            "Call its step_wait() first."
        )
    if is_lost(vec_env, watch):
        raise WorkerError(
            f"Expected {vec_env} with all of its workers, but an earlier error or interrupt has "
            "lost some. Close this environment and build a new one."
        )


def is_stepping(vec_env: SubprocLike, watch: Watch) -> bool:
    """Whether the user has started a step: all workers owe an answer to `step_async`."""
    exchange = watch.exchange
    alone = not (watch.speaking or exchange.dead)
    every = len(exchange.owed) == len(watch.pipes)
    return alone and every and getattr(vec_env, "waiting", False)


def is_lost(vec_env: SubprocLike, watch: Watch) -> bool:
    """Whether a worker has died, or owes an answer that nobody waits for."""
    return watch.lost and not is_stepping(vec_env, watch)


def has_workers(base: object) -> bool:
    """Whether this is a `SubprocVecEnv`, or built like one: pipes and processes, by row.

    Raises:
        UpstreamError: If it is a `SubprocVecEnv` and has none of them.
    """
    if not _is_subproc(base):
        return can_watch(getattr(base, "remotes", ()), getattr(base, "processes", ()))
    for name in ("remotes", "processes"):
        private(base, name)
    return True


def has_processes(base: object) -> bool:
    """Whether there are worker processes, of whatever form."""
    return has_workers(base) or hasattr(base, "processes")


def lost_process(base: object, error: BaseException) -> bool:
    """Whether the error of a `VecEnv` with workers of its own is the death of one of them.

    A process says so: a wrapper, or a sub-environment, may raise the same errors.
    """
    processes = list(getattr(base, "processes", None) or ())
    if not processes or not isinstance(error, EOFError | OSError) or not lost_worker(error):
        return False
    try:
        return bool(wait([process.sentinel for process in processes], _END_SECONDS))
    except (AttributeError, ValueError):  # no processes of `multiprocessing`, or closed
        return False


def forget_step(base: SubprocLike) -> None:
    """Let `close` wait for no answers, as they were taken already or will never come."""
    if _is_subproc(base):
        private(base, "waiting")
    base.waiting = False


def terminate(base: SubprocLike) -> None:
    """Close the environment by its processes, for which SB3 would wait for ever."""
    pipes: list[Any] = [unwatched(remote) for remote in base.remotes]
    for pipe in pipes:
        # A worker that hangs may have left it full.
        with suppress(OSError):
            if is_writable(pipe):
                pipe.send(("close", None))
    until = Deadline(_CLOSE_SECONDS)
    for process in base.processes:
        process.join(until.left())
    end_processes(process for process in base.processes if process.is_alive())
    for pipe in pipes:
        pipe.close()
    forget_step(base)
    if _is_subproc(base):
        private(base, "closed")
    base.closed = True


def _is_subproc(base: object) -> bool:
    cls = sb3_class("SubprocVecEnv")
    return cls is not None and isinstance(base, cls)
