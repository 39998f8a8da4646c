"""Exceptions at chosen points of an operation, where a signal handler may raise one.

`sys.settrace` finds every point: each bytecode instruction that the operation runs in the modules
of `TRACED`. So no test depends on when a signal comes.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from sb3compat.errors import CallOrderError, ClosedError, EndedRowError, WorkerError
from tests.lockstep import same
from tests.profiles import nightly

# Parts of the paths of the modules in which an operation is interrupted.
TRACED = (
    "/sb3compat/_",
    "/gymnasium/vector/",
    "/stable_baselines3/common/vec_env/",
    "/multiprocessing/connection.py",
    "/envpool/python/",
    "/ale_py/",
    "/gymnasium/envs/classic_control/cartpole.py",
    "/gymnasium/envs/functional_jax_env.py",
    "/tests/interrupts.py",
)


class LimitError(TimeoutError):
    """What the handler of a time limit raises; also an OSError, as the errors of pipes are."""


ERRORS: tuple[type[BaseException], ...] = (KeyboardInterrupt, LimitError)


# Only this process is interrupted, not a worker that it forks meanwhile.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=partial(sys.settrace, None))


class _Tracer:
    def __init__(self, at: int | None, act: Callable[[], None]) -> None:
        self.seen = 0
        self.where = ""
        self._at, self._act = at, act
        self._wanted: dict[str, bool] = {}

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        file = frame.f_code.co_filename.replace("\\", "/")
        if file not in self._wanted:
            self._wanted[file] = any(part in file for part in TRACED)
        if not self._wanted[file] or _within_destructor(frame):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._inside

    def _inside(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "opcode":
            self.seen += 1
            if self.seen == self._at:
                sys.settrace(None)
                self.where = f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}"
                self._act()
        return self._inside


def _within_destructor(frame: FrameType | None) -> bool:
    """Whether Python would report an exception here, and go on."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


@contextmanager
def _collecting_nothing() -> Iterator[None]:
    """Let no exception be raised within a collection: Python reports it there, and goes on.

    What is left of earlier tests would have its destructors called, and Hypothesis notes how long
    each collection takes.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _run(tracer: _Tracer, operation: Callable[[], Any]) -> None:
    with _collecting_nothing():
        before = sys.gettrace()
        sys.settrace(tracer)
        try:
            operation()
        finally:
            sys.settrace(before)


@contextmanager
def raised_by(number: signal.Signals, error: type[BaseException]) -> Iterator[None]:
    """Let the handler of this signal raise the error."""

    def handle(*_: Any) -> None:
        raise error

    with _collecting_nothing():
        before = signal.signal(number, handle)
        try:
            yield
        finally:
            signal.signal(number, before)


def count(operation: Callable[[], Any]) -> int:
    """How many points the operation has."""
    tracer = _Tracer(None, lambda: None)
    _run(tracer, operation)
    return tracer.seen


def interrupt(operation: Callable[[], Any], at: int, error: type[BaseException]) -> str | None:
    """Run the operation and raise the error at that point.

    Returns:
        Where the error was raised; None if the operation went on: an `except Exception` on the way
        has caught it, or there are fewer points.
    """

    def act() -> None:
        raise error("interrupted")

    tracer = _Tracer(at, act)
    raised = attempt(lambda: _run(tracer, operation), BaseException)[1]
    if raised is not None and not tracer.where:
        raise raised
    chain = [raised]
    while chain[-1] is not None:
        chain.append(chain[-1].__context__)
    if raised is not None and not any(isinstance(one, error) for one in chain):
        raise raised
    return tracer.where if raised is not None else None


def within(operation: Callable[[], Any], at: int, act: Callable[[], None]) -> tuple[Any, str]:
    """Run the operation and, at that point of it, something else; its result, and the place."""
    tracer, results = _Tracer(at, act), []
    _run(tracer, lambda: results.append(operation()))
    return results[0], tracer.where


def attempt(call: Callable[[], Any], *errors: type[BaseException]) -> tuple[Any, Any]:
    """What the call returns, and None; or None, and which of these errors it raises."""
    try:
        return call(), None
    except errors as error:
        return None, error


# Ray takes more than a minute to start an actor where other tests run beside.
HANG_SECONDS, _TICK_SECONDS = 300, 5


@contextmanager
def no_hang() -> Iterator[None]:
    """Fail if a call hangs.

    A signal that comes just before a system call waits for that call: Python runs its handler only
    afterwards. The ticks end such a call, as the user's second Ctrl-C does.
    """
    left = HANG_SECONDS // _TICK_SECONDS

    def tick(*_: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise AssertionError("a call hangs")

    before = signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, _TICK_SECONDS, _TICK_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# Each point takes new workers.
_FEW = 3
# The points of the lines that return what was done.
_AT_THE_END = 30


def points(total: int, number: int = 30) -> Iterator[tuple[int, type[BaseException]]]:
    """A few points, evenly spread, with the errors by turns; nightly `number` of them."""
    some = min(number if nightly() else _FEW, total)
    chosen = np.unique(np.linspace(1, total, some).astype(int))
    for turn, at in enumerate(chosen.tolist()):
        yield at, ERRORS[turn % len(ERRORS)]


def interrupted(
    started: Callable[[], Any], operation: Callable[[Any], Any]
) -> Iterator[tuple[Any, bool, str]]:
    """A started environment after each of a few interrupts of an operation.

    Yields:
        The environment; whether the operation is as good as done, as where the exception comes as
        it returns; and where that was.
    """
    first = started()
    total = count(partial(operation, first))
    first.close()
    for at, error in points(total):
        env = started()
        with no_hang():
            raised = interrupt(partial(operation, env), at, error)
            done = raised is None or total - at < _AT_THE_END
            yield env, done, f"{error.__name__} at point {at} of {total}: {raised}"


# What a call may raise after an interrupt.
CLEAR = (CallOrderError, ClosedError, EndedRowError, WorkerError)


def answered(call: Callable[[], Any], where: str) -> tuple[Any, Any]:
    """What a call returns, or its error, which has to say what leads on."""
    got, error = attempt(call, *CLEAR)
    ways = ("reset", "Close this environment", "was closed")
    assert error is None or any(way in str(error) for way in ways), f"{where}: {error}"
    return got, error


def check_reads(env: Any, reads: dict[str, tuple[Callable[[Any], Any], Any]], where: str) -> None:
    """Each read gives its value, or raises."""
    for name, (read, value) in reads.items():
        got, error = answered(lambda read=read: read(env), where)  # type: ignore[misc]
        assert error or got == value, f"{where}: {name} returned {got}"


def check(
    env: Any,
    calls: tuple[Callable[[Any], Any], Callable[[Any], Any]],
    reads: dict[str, tuple[Callable[[Any], Any], Any]],
    expected: Sequence[Any],
    transcript: Sequence[Any],
    where: str,
) -> bool:
    """Each call raises an error that says what to call, or its result is right.

    Args:
        env: The environment, after an interrupt.
        calls: Its step, and its reset with a seed.
        reads: The reads, and what they give.
        expected: What the step may return; empty where that is not known.
        transcript: The results of the reset, and of the steps after it.
        where: Where the interrupt was.

    Returns:
        Whether a reset leads out. If not, it says that the environment must be closed.
    """
    step, reset = calls
    check_reads(env, reads, where)
    got, error = answered(lambda: step(env), where)
    if expected and not error:
        wrong = [attempt(partial(same, got, each), AssertionError)[1] for each in expected]
        assert None in wrong, f"{where}: step returned {got}"
    first, error = attempt(lambda: reset(env), WorkerError)
    if error:
        assert "Close this environment" in str(error), where
        return False
    for number, wanted in enumerate(transcript):
        same(step(env) if number else first, wanted, f"{where}, {number}")
    return True


def check_close(env: Any, source: Any, where: str) -> None:
    """Close it, twice; the processes of what it is made of have ended then."""
    env.close()
    env.close()
    processes = getattr(source.unwrapped, "processes", ())
    assert not any(process.is_alive() for process in processes), where


class Counting(gym.Env[Any, Any]):
    """Its observation says which call it answers: row, seed, episode, time."""

    observation_space = spaces.Box(-np.inf, np.inf, (4,), np.float32)
    action_space = spaces.Discrete(4)
    metadata = {"render_modes": ["rgb_array"], "render_fps": 7}
    render_mode = "rgb_array"

    def __init__(self, row: int) -> None:
        self.row = row
        self.seed = self.episode = self.time = 0
        self.mark = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.episode += 1
        self.time = 0
        if seed is not None:
            self.seed, self.episode = seed, 0
        return self._obs(), {"first": self.episode}

    def step(self, action: Any) -> Any:
        self.time += 1
        ended = self.time == 2 + self.row % 3
        cut = ended and self.episode % 2 == 1
        reward = 100.0 * self.episode + self.time
        return self._obs(), reward, ended and not cut, cut, {"taken": int(action)}

    def render(self) -> Any:
        return np.full((2, 2, 3), self.row, np.uint8)

    def add(self, number: int) -> int:
        return self.row + number

    def _obs(self) -> Any:
        return np.array([self.row, self.seed, self.episode, self.time], np.float32)


def counting(n: int = 2) -> list[Callable[[], Counting]]:
    """One function for each of n rows."""
    return [partial(Counting, row) for row in range(n)]


# Python 3.12 traces instructions from the `settrace` on that follows the first frame to ask for it.
count(lambda: None)
