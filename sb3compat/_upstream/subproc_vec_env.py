"""Commands to single workers of a `SubprocVecEnv`, and its end."""

from __future__ import annotations

import pickle
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

from sb3compat._convert.types import Value
from sb3compat._upstream.exceptions import reraise, unpacked
from sb3compat._upstream.pipes import Exchange, Line, died, end_processes, lines_of, pickled
from sb3compat._upstream.private import private
from sb3compat._upstream.vec_env import sb3_class
from sb3compat._upstream.worker_guard import NAME, Guard
from sb3compat.errors import CallOrderError, ClosedError, WorkerError

# How long a worker may take to close its sub-environment when others are lost already.
_CLOSE_SECONDS = 5.0


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

    Attributes:
        vec_env: The environment.
        lost: Whether a worker has died, or owes an answer that nobody waits for.

    Raises:
        WorkerError: If a worker has died.
    """

    def __init__(self, vec_env: SubprocLike) -> None:
        self.vec_env = vec_env
        self.lost = False
        self._exchange(dict.fromkeys(range(vec_env.num_envs), ("set_attr", (NAME, Guard()))))

    @property
    def num_envs(self) -> int:
        """The number of rows."""
        return self.vec_env.num_envs

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
        self._check_ready()
        data = {row: pickled(message) for row, message in messages.items()}
        exchange = Exchange(_lines(self.vec_env))
        # An exception from here on leaves answers on their way that nobody waits for.
        self.lost = True
        exchange.send(data)
        exchange.receive()
        if exchange.dead:
            raise died(min(exchange.dead)) from exchange.dead[min(exchange.dead)]
        self.lost = False
        return {row: exchange.answers[row] for row in data}

    def _check_ready(self) -> None:
        if private(self.vec_env, "closed"):
            raise ClosedError(f"Expected an open environment, but {self.vec_env} was closed.")
        if self.lost:
            raise WorkerError(
                f"Expected {self.vec_env} with all of its workers, but an earlier error has lost "
                "some. Close this environment and build a new one."
            )
        if private(self.vec_env, "waiting"):
            raise CallOrderError(
                f"Expected {self.vec_env} with no step under way, but step_async() was called. "
                "Call its step_wait() first."
            )


def has_workers(base: object) -> bool:
    """Whether this is a `SubprocVecEnv`, or built like one: pipes and processes, by row.

    Raises:
        UpstreamError: If it is a `SubprocVecEnv` and has none of them.
    """
    if not _is_subproc(base):
        return hasattr(base, "remotes") and hasattr(base, "processes")
    for name in ("remotes", "processes"):
        private(base, name)
    return True


def has_processes(base: object) -> bool:
    """Whether a dead worker can be the reason of an error: the environment has processes."""
    return has_workers(base) or hasattr(base, "processes")


def await_answers(base: SubprocLike) -> None:
    """Wait until every worker has answered, and leave the answers to SB3.

    SB3 itself waits for ever where a worker has ended: a forked worker holds the pipes of those
    forked after it, so that the end of one of them shows in its process only.

    Raises:
        EOFError: If a worker has ended without an answer.
    """
    exchange = Exchange(_lines(base))
    exchange.owed.update(dict.fromkeys(range(len(base.remotes))))
    exchange.await_all()
    for error in exchange.dead.values():
        raise error


def forget_step(base: SubprocLike) -> None:
    """Let `close` wait for no answers, as they were taken already or will never come."""
    if _is_subproc(base):
        private(base, "waiting")
    base.waiting = False


def terminate(base: SubprocLike) -> None:
    """Close the environment by its processes, for which SB3 would wait for ever."""
    for remote in base.remotes:
        with suppress(OSError):
            remote.send(("close", None))
    until = time.monotonic() + _CLOSE_SECONDS
    for process in base.processes:
        process.join(max(0.0, until - time.monotonic()))
    end_processes(process for process in base.processes if process.is_alive())
    for remote in base.remotes:
        remote.close()
    forget_step(base)
    if _is_subproc(base):
        private(base, "closed")
    base.closed = True


def _is_subproc(base: object) -> bool:
    cls = sb3_class("SubprocVecEnv")
    return cls is not None and isinstance(base, cls)


def _lines(vec_env: SubprocLike) -> dict[int, Line]:
    remotes, processes = private(vec_env, "remotes"), private(vec_env, "processes")
    return lines_of(remotes, processes, range(len(remotes)))
