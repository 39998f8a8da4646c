"""Commands to single workers of a `SubprocVecEnv`, and closing it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from sb3compat._ipc.pipes import Deadline, end_processes, is_writable, pickled
from sb3compat._ipc.ready import join
from sb3compat._ipc.watched_pipes import unwatched, watch_of
from sb3compat._ipc.worker_guard import NAME, Inside, Run, plant, results_of
from sb3compat._upstream.private import private, set_private
from sb3compat.errors import CallOrderError, WorkerError, was_closed

# How long a worker may take to close its sub-environment if other workers are lost.
_CLOSE_SECONDS = 5.0


class SubprocWorkers:
    """The workers of a `SubprocVecEnv`.

    The environment's own methods then record outstanding answers, and notice dead workers.

    Args:
        vec_env: The environment.

    Attributes:
        vec_env: The environment.
    """

    def __init__(self, vec_env: Any) -> None:
        self.vec_env = vec_env
        remotes, processes = private(vec_env, "remotes"), private(vec_env, "processes")
        self._watch = watch_of(remotes, processes, noted=self._noted_step)
        set_private(vec_env, "remotes", tuple(self._watch.pipes))

    @property
    def lost(self) -> bool:
        """Whether a worker has died, or an answer of an interrupted call is outstanding."""
        return self._watch.is_lost(noted=self._noted_step)

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run a function that sends and receives by the environment's own methods.

        Raises:
            ClosedError: If the environment was closed.
            CallOrderError: If the user has called `step_async`, or another call is under way.
            WorkerError: If a worker is lost.
        """
        with self._watch.turn:
            self._check_ready()
            return self._watch.call(function, *args)

    @property
    def _noted_step(self) -> bool:
        """Whether the environment has noted that `step_async` was called."""
        return bool(private(self.vec_env, "waiting"))

    def _check_ready(self) -> None:
        """Raise an error if a worker is gone, or if an answer is outstanding."""
        vec_env = self.vec_env
        if private(vec_env, "closed"):
            raise was_closed(vec_env)
        if self._watch.waits(noted=self._noted_step):
            raise CallOrderError(
                f"Expected {vec_env} with no step under way, but step_async() was called. "
                "Call its step_wait() first."
            )
        if self.lost:
            raise WorkerError(
                f"Expected {vec_env} with all of its workers, but an earlier error or interrupt "
                "has lost some. Close this environment and build a new one."
            )


class GuardedWorkers(SubprocWorkers):
    """The workers of a `SubprocVecEnv`, asked one by one or several at a time.

    Args:
        vec_env: The environment.
        run: Runs a command in the worker, as `worker_guard.Guard` has it.

    Attributes:
        guarded: Whether they can be asked: not where a subclass has a loop of its own, whose
            variable of the sub-environment is not called `env`.

    Raises:
        WorkerError: If a worker has died.
    """

    def __init__(self, vec_env: Any, run: Run) -> None:
        super().__init__(vec_env)
        # Every environment has both attributes; only the second one is a dict.
        message = "get_attr", Inside(plant, run, "metadata")
        answers = self._exchange(dict.fromkeys(range(vec_env.num_envs), message))
        self.guarded = not any(isinstance(answer, dict) for answer in answers.values())

    def ask(self, commands: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Send each row its command, then collect the results.

        Raises:
            WorkerError: If a worker has died.
            Exception: What a sub-environment has raised, with the worker's traceback as its cause;
                if several have, that of the first row, as in `DummyVecEnv`.
        """
        return results_of(
            self._exchange(
                {row: ("env_method", (NAME, command, {})) for row, command in commands.items()}
            )
        )

    def _exchange(self, messages: Mapping[int, Any]) -> dict[int, Any]:
        with self._watch.turn:
            self._check_ready()
            data = {row: pickled(message) for row, message in messages.items()}
            exchange = self._watch.exchange
            exchange.drop_answers()
            exchange.send(data)
            exchange.receive()
            self._watch.check_alive()
            answers = exchange.taken()  # in the order in which they came
            return {row: answers[row] for row in data}


def terminate(base: Any) -> None:
    """Close the environment by terminating its processes, for which SB3 would wait forever."""
    processes = private(base, "processes")
    pipes: list[Any] = [unwatched(remote) for remote in private(base, "remotes")]
    for pipe in pipes:
        # A worker that hangs may have left it full.
        with suppress(OSError):
            if is_writable(pipe):
                pipe.send(("close", None))
    until = Deadline(_CLOSE_SECONDS)
    for process in processes:
        join(process, until.left())
    end_processes(process for process in processes if process.is_alive())
    for pipe in pipes:
        pipe.close()
    # `close` would wait for answers that were taken already, or will never come.
    set_private(base, "waiting", False)
    set_private(base, "closed", True)
