"""Commands to the workers of a `SubprocVecEnv`, and what answers them there.

The loop that SB3 runs in its workers resets an ended sub-environment before anyone has seen the
last observation, and dies of the first exception, whose type is lost with it. So a `Guard` is
placed beside each sub-environment, by SB3's own `set_attr`, and called by its `env_method`: it runs
one command, and sends what it raised as an answer like any other. This module is imported in the
workers; it imports neither SB3 nor torch.
"""

from __future__ import annotations

import io
import pickle
import sys
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import wait
from multiprocessing.reduction import ForkingPickler
from typing import Any

import gymnasium as gym

from sb3compat._convert.arrays import copy_value
from sb3compat.errors import ClosedError, WorkerError

# The attribute of the sub-environment that holds the guard.
NAME = "_sb3compat_guard"


# Observation, reward, terminated, truncated and info of a step; and observation and info of the
# reset within it, if there was one. A tuple, as there is one for each row of each step.
Outcome = tuple[Any, Any, bool, bool, dict[str, Any], tuple[Any, dict[str, Any]] | None]


def step_env(env: Any, action: Any, same_step: bool) -> Outcome:
    """Step a sub-environment and, with `same_step`, reset it where that ends its episode."""
    observation, reward, terminated, truncated, info = env.step(action)
    if not (terminated or truncated):
        return observation, reward, False, False, info, None
    first = None
    if same_step:
        # Before the reset, which may overwrite the very objects that `step` returned.
        observation, info = copy_value(observation), copy_value(info)
        first = env.reset()
    # Both at once is terminated, as everywhere in SB3.
    return observation, reward, bool(terminated), not terminated, info, first


def reset_env(env: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Reset a sub-environment."""
    result: tuple[Any, dict[str, Any]] = env.reset(**kwargs)
    return result


def call_env(env: Any, name: str, args: Any, kwargs: Any) -> Any:
    """An attribute of a sub-environment, called if it can be, as Gymnasium's `call` does."""
    value = env.get_wrapper_attr(name)
    return value(*args, **kwargs) if callable(value) else value


def set_env(env: Any, name: str, value: Any) -> None:
    """Set an attribute on the wrapper that has it, as Gymnasium's `set_attr` does."""
    env.set_wrapper_attr(name, value)


_COMMANDS: dict[str, Callable[..., Any]] = {
    "step": step_env,
    "reset": reset_env,
    "call": call_env,
    "set": set_env,
}


class Guard:
    """Runs commands on the sub-environment of the worker that calls it."""

    def __call__(self, command: str, *args: Any) -> tuple[bool, Any]:
        """The answer: whether it went well, and the result or what was raised."""
        env = sys._getframe(1).f_locals["env"]  # as SB3's worker names it
        assert isinstance(env, gym.Env)
        try:
            # Pickled here: what cannot be sent must not end the worker either.
            return True, pickle.dumps(_COMMANDS[command](env, *args), pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            return False, _packed(error)


def _packed(error: Exception) -> tuple[bytes | None, str]:
    trace = traceback.format_exc()
    try:
        return pickle.dumps(error), trace
    except Exception:  # of a class defined inside a function, for instance
        return None, trace


class Workers:
    """The workers of a `SubprocVecEnv`, asked one by one or several at a time.

    Args:
        vec_env: The environment, with SB3's own worker.

    Raises:
        WorkerError: If a worker has died.
    """

    def __init__(self, vec_env: Any) -> None:
        self.vec_env = vec_env
        self.lost = False
        self._forked = "Fork" in type(vec_env.processes[0]).__name__.replace("ForkServer", "")
        self._exchange(dict.fromkeys(range(vec_env.num_envs), ("set_attr", (NAME, Guard()))))

    def ask(self, commands: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Send each row its command, then collect the results.

        Every answer that comes is taken, also after one that is an error, so that none is left to
        be taken for the next one.

        Raises:
            WorkerError: If a worker has died.
            Exception: What a sub-environment has raised, with the worker's traceback as its cause;
                that of the first row where several have, as `DummyVecEnv` would have met it.
        """
        messages: dict[int, Any] = {
            i: ("env_method", (NAME, command, {})) for i, command in commands.items()
        }
        answers = self._exchange(messages)
        for row, (success, payload) in answers.items():
            if not success:
                _raise_from_worker(row, *payload)
        return {row: pickle.loads(payload) for row, (_, payload) in answers.items()}

    def _exchange(self, messages: Mapping[int, Any]) -> dict[int, Any]:
        remotes = self.vec_env.remotes
        self._check_ready()
        # Pickled before anything is sent: what cannot be pickled leaves all workers untouched.
        data = {row: ForkingPickler.dumps(message) for row, message in messages.items()}
        answers: dict[int, Any] = {}
        dead: dict[int, Exception] = {}
        try:
            for row, message in data.items():
                try:
                    remotes[row].send_bytes(message)
                except OSError as error:
                    dead[row] = error
            for row in data:
                if row not in dead:
                    try:
                        answers[row] = self._receive(row)
                    except (EOFError, OSError) as error:
                        dead[row] = error
        except BaseException:
            self.lost = True  # answers may be on their way that nobody waits for
            raise
        if dead:
            self.lost = True
            row = min(dead)
            raise WorkerError(
                f"The worker process of row {row} has died without an answer; what it said last "
                "is in its own output. Close this environment and build a new one."
            ) from dead[row]
        return answers

    def _receive(self, row: int) -> Any:
        remote, process = self.vec_env.remotes[row], self.vec_env.processes[row]
        # A forked worker holds the pipes of those forked after it, so that the end of one of them
        # shows in its process only.
        if self._forked and remote not in wait([remote, process.sentinel]):
            raise EOFError(f"process {process.pid} has ended")
        return remote.recv()

    def _check_ready(self) -> None:
        if self.vec_env.closed:
            raise ClosedError(f"Expected an open environment, but {self.vec_env} was closed.")
        if self.lost:
            raise WorkerError(
                f"Expected {self.vec_env} with all of its workers, but an earlier error has lost "
                "some. Close this environment and build a new one."
            )
        if self.vec_env.waiting:
            raise RuntimeError(
                f"Expected {self.vec_env} with no step under way, but step_async() was called. "
                "Call its step_wait() first."
            )


def _raise_from_worker(row: int, data: bytes | None, trace: str) -> None:
    from sb3compat._upstream.async_vector_env import ExceptionUnpickler

    cause = WorkerError(f"in the worker of row {row}:\n{trace}")
    if data is None:
        raise WorkerError(
            f"The sub-environment of row {row} has raised an exception that cannot be pickled, "
            "such as one of a class defined inside a function."
        ) from cause
    raise ExceptionUnpickler(io.BytesIO(data)).load() from cause
