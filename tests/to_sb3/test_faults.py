"""Faults in workers: the true error arrives, closing works, no process is left behind."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from gymnasium.vector import AutoresetMode

import sb3compat
from sb3compat._ipc import async_vector_env as workers
from sb3compat._ipc import pipes
from tests.envs import GYMNASIUM, Identity, MakeEnv, Returns, ScriptedEnv, script
from tests.to_sb3.driving import ASYNC, made, mode_of, step


class SeveralError(Exception):
    def __init__(self, number: int, text: str) -> None:
        super().__init__(f"{text} {number}")


class Failing(ScriptedEnv):
    """Fails in its second step, in the given way."""

    def __init__(self, row: int, how: str = "raise") -> None:
        super().__init__(script(), row)
        self.how = how

    def step(self, action: Any) -> Any:
        if self._time == 1:
            self.fail_by(self.how)
        return super().step(action)

    def fail_by(self, how: str) -> None:
        if how == "raise":
            raise SeveralError(self.row, "number")
        if how == "percent":
            raise ValueError("%s is bad" % "%d")  # noqa: UP031
        if how == "unpicklable":
            raise type("LocalError", (Exception,), {"lock": threading.Lock()})
        if how == "local":
            raise type("LocalError", (Exception,), {})
        if how == "hang":
            threading.Event().wait()  # for ever
        if how == "die":
            os.kill(os.getpid(), signal.SIGKILL)

    def render(self) -> Any:
        self.fail_by(self.how)
        return super().render()

    def pid(self) -> int:
        return os.getpid()


def failing_reset(number: int) -> Any:
    """Fails in its first or its second reset."""

    def reset(obs: Any, info: Any) -> Any:
        if info["resets"] > number:
            raise SeveralError(number, "reset")
        return obs, info

    return Returns(1, reset=reset, lengths=(1,))


kind_of = pytest.mark.parametrize("kind", ASYNC)
_opened: list[Any] = []


@pytest.fixture(autouse=True)
def _nobody_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each environment can be closed, twice, and all of its workers are gone then."""
    monkeypatch.setattr(workers, "_ERROR_SECONDS", 0.2)
    monkeypatch.setattr(pipes, "_TERMINATE_SECONDS", 0.1)
    monkeypatch.setattr(pipes.Exchange, "grace_seconds", 0.2)
    yield
    while _opened:
        env = _opened.pop()
        env.close()
        env.close()
        processes = env.env.unwrapped.processes
        assert not any(process.is_alive() for process in processes)


def opened(kind: str, fns: list[Any], timeout: float | None = None, **kwargs: Any) -> Any:
    env = sb3compat.to_sb3(made(kind, fns, **kwargs), timeout=timeout)
    _opened.append(env)
    return env


def adapted(kind: str, fns: list[Any], **kwargs: Any) -> Any:
    env = opened(kind, fns, **kwargs)
    env.reset()
    return env


def failing(how: str, row: int = 1) -> list[Any]:
    fns: list[Any] = [MakeEnv(script(), 0), MakeEnv(script(), 1)]
    fns[row] = lambda: Failing(row, how)
    return fns


def check_lost(env: Any) -> None:
    """Every call raises an error, and none returns the answer to an earlier call."""
    for use in (
        lambda: step(env),
        env.reset,
        lambda: env.get_attr("row", indices=0),
        lambda: env.env_method("set_mu", 1, indices=[0]),
        lambda: env.env_is_wrapped(Identity, indices=0),
        env.get_images,
    ):
        with pytest.raises(sb3compat.WorkerError, match="build a new one"):
            use()


class Fault(NamedTuple):
    """What a worker does in a call, and the error of that call, by the name of its class."""

    how: str
    error: str
    text: str = ""
    call: Callable[[Any], Any] = step
    row: int = 1


IMAGES: Callable[[Any], Any] = lambda env: env.get_images()  # noqa: E731
FAULTS = {
    "percent signs in the message": Fault("percent", "ValueError", r"^%d is bad$"),
    "unpicklable": Fault("unpicklable", "WorkerError", "cannot be pickled"),
    "local class": Fault("local", "LocalError"),
    "first row dies": Fault("die", "WorkerError", "row 0 has died", row=0),
    "last row dies": Fault("die", "WorkerError", "row 1 has died"),
    "render": Fault("raise", "SeveralError", r"^number 1$", IMAGES),
    "unpicklable in render": Fault("unpicklable", "WorkerError", "cannot be pickled", IMAGES),
    "last row dies in render": Fault("die", "WorkerError", "row 1 has died", IMAGES),
}


@kind_of
@pytest.mark.parametrize("name", FAULTS)
def test_fault_in_a_call_is_the_error_of_that_call(kind: str, name: str) -> None:
    fault = FAULTS[name]
    env = adapted(kind, failing(fault.how, fault.row))
    step(env)
    with pytest.raises(Exception, match=fault.text or None) as caught:
        fault.call(env)
    assert type(caught.value).__name__ == fault.error
    if fault.call is IMAGES and fault.how != "die":  # asked by a guard, which survives exceptions
        assert env.get_attr("row") == [0, 1]
        env.reset()
    else:
        check_lost(env)


# What fails, after how many steps, and the message.
RAISES: dict[str, tuple[Callable[[], Any], int | None, str]] = {
    "step": (lambda: Failing(1), 1, "number 1"),
    "reset": (lambda: failing_reset(0), None, "reset 0"),
    "reset within a step": (lambda: failing_reset(1), 0, "reset 1"),
}


@kind_of
@mode_of
@pytest.mark.parametrize("where", RAISES)
def test_exception_arrives_with_its_type_and_traceback(
    kind: str, mode: AutoresetMode, where: str
) -> None:
    make, steps, text = RAISES[where]
    env = opened(kind, [MakeEnv(script(), 0), make], mode=mode)
    if steps is not None:
        env.reset()
        for _ in range(steps):
            step(env)
    with pytest.raises(SeveralError, match=f"^{text}$") as caught:
        env.reset() if steps is None else step(env)
    for part in ("worker of row 1", "Traceback", "SeveralError: "):
        assert part in str(caught.value.__cause__)
    check_lost(env)


@pytest.mark.skipif(GYMNASIUM < (1, 4), reason="Gymnasium 1.4 has max_concurrency")
@kind_of
@pytest.mark.parametrize("row", [0, 1])
def test_worker_that_dies_while_it_blocks_the_others_is_a_worker_error(kind: str, row: int) -> None:
    env = adapted(kind, failing("die", row), max_concurrency=1)
    step(env)
    with pytest.raises(sb3compat.WorkerError, match="has died"):
        step(env)


@kind_of
def test_error_of_the_first_row_is_raised_of_several(kind: str) -> None:
    env = adapted(kind, [lambda i=i: Failing(i) for i in (5, 3, 4)])
    step(env)
    with pytest.raises(SeveralError, match=r"^number 5$"):
        step(env)


@pytest.mark.parametrize("kind", ["async", "async unshared"])
@pytest.mark.parametrize("use", [step, lambda env: env.reset()])
def test_stopped_worker_is_a_timeout_error(kind: str, use: Callable[[Any], Any]) -> None:
    env = adapted(kind, failing("never"), timeout=20.0)
    env._source._timeout = 0.2
    os.kill(env.env_method("pid", indices=1)[0], signal.SIGSTOP)
    with pytest.raises(sb3compat.WorkerTimeoutError, match=r"row 1 .* timeout=0\.2") as caught:
        use(env)
    assert isinstance(caught.value, TimeoutError)
    check_lost(env)
