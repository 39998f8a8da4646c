"""Faults in workers: the true error arrives, closing works, no process is left behind."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

import sb3compat
from sb3compat._ipc import async_vector_env as workers
from sb3compat._ipc import pipes
from tests.envs import GYMNASIUM, Identity, MakeEnv, ScriptedEnv, script


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


class FailingReset(ScriptedEnv):
    def reset(self, **kwargs: Any) -> Any:
        if self._resets == self.row:
            raise SeveralError(self.row, "reset")
        return super().reset(**kwargs)


KINDS: dict[str, Callable[..., Any]] = {
    "bare": AsyncVectorEnv,
    "wrapped": lambda *args, **kwargs: Identity(AsyncVectorEnv(*args, **kwargs)),
    "unshared": lambda *args, **kwargs: AsyncVectorEnv(*args, shared_memory=False, **kwargs),
}
MODES = list(AutoresetMode)
kind_of = pytest.mark.parametrize("kind", KINDS)
mode_of = pytest.mark.parametrize("mode", MODES, ids=[mode.name for mode in MODES])

ACTIONS = np.zeros(2, int)
_opened: list[Any] = []


@pytest.fixture(autouse=True)
def _nobody_is_left() -> Iterator[None]:
    """Each environment can be closed, twice, and all of its workers are gone then."""
    yield
    while _opened:
        env = _opened.pop()
        env.close()
        env.close()
        processes = env.env.unwrapped.processes
        assert not any(process.is_alive() for process in processes)


def adapted(kind: str, fns: list[Any], timeout: float | None = None, **kwargs: Any) -> Any:
    env = sb3compat.to_sb3(KINDS[kind](fns, **kwargs), timeout=timeout)
    _opened.append(env)
    env.reset()
    return env


def failing(how: str, row: int = 1) -> list[Any]:
    fns: list[Any] = [MakeEnv(script(), 0), MakeEnv(script(), 1)]
    fns[row] = lambda: Failing(row, how)
    return fns


def check_lost(env: Any) -> None:
    """Every call raises an error, and none returns the answer to an earlier call."""
    for use in (
        lambda: env.step(ACTIONS),
        env.reset,
        lambda: env.get_attr("row", indices=0),
        lambda: env.env_method("set_mu", 1, indices=[0]),
        lambda: env.env_is_wrapped(Identity, indices=0),
        env.get_images,
    ):
        with pytest.raises(sb3compat.WorkerError, match="build a new one"):
            use()


@kind_of
@mode_of
def test_error_in_a_step_arrives_with_its_type_and_traceback(
    kind: str, mode: AutoresetMode
) -> None:
    env = adapted(kind, failing("raise"), autoreset_mode=mode)
    env.step(ACTIONS)
    with pytest.raises(SeveralError, match=r"^number 1$") as caught:
        env.step(ACTIONS)
    for part in ("worker of row 1", "Traceback", "SeveralError: number"):
        assert part in str(caught.value.__cause__)
    check_lost(env)


@kind_of
def test_message_with_percent_signs_arrives_unchanged(kind: str) -> None:
    env = adapted(kind, failing("percent"))
    env.step(ACTIONS)
    with pytest.raises(ValueError, match=r"^%d is bad$"):
        env.step(ACTIONS)


@kind_of
def test_exception_that_cannot_be_pickled_is_a_worker_error(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_ERROR_SECONDS", 0.2)
    env = adapted(kind, failing("unpicklable"))
    env.step(ACTIONS)
    with pytest.raises(sb3compat.WorkerError, match="cannot be pickled"):
        env.step(ACTIONS)
    check_lost(env)


@pytest.mark.parametrize("kind", ["bare", "wrapped", "unshared"])
def test_exception_of_a_local_class_arrives_under_its_name(kind: str) -> None:
    env = adapted(kind, failing("local"))
    env.step(ACTIONS)
    with pytest.raises(Exception) as caught:  # noqa: PT011
        env.step(ACTIONS)
    assert type(caught.value).__name__ == "LocalError"
    check_lost(env)


@kind_of
@pytest.mark.parametrize("row", [0, 1])
def test_worker_that_dies_in_a_step_is_named(kind: str, row: int) -> None:
    env = adapted(kind, failing("die", row))
    env.step(ACTIONS)
    with pytest.raises(sb3compat.WorkerError, match=f"row {row} has died"):
        env.step(ACTIONS)
    check_lost(env)


@kind_of
@pytest.mark.parametrize(
    "use", [lambda env: env.step(ACTIONS), lambda env: env.reset(), lambda env: env.get_images()]
)
def test_killed_worker_is_named(kind: str, use: Callable[[Any], Any]) -> None:
    env = adapted(kind, failing("never"))
    os.kill(env.env_method("pid", indices=1)[0], signal.SIGKILL)
    env.env.unwrapped.processes[1].join()
    with pytest.raises(sb3compat.WorkerError, match="row 1 has died"):
        use(env)
    check_lost(env)


@pytest.mark.skipif(GYMNASIUM < (1, 4), reason="Gymnasium 1.4 has max_concurrency")
@kind_of
@pytest.mark.parametrize("row", [0, 1])
def test_worker_that_dies_while_it_blocks_the_others_is_a_worker_error(
    kind: str, row: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipes.Exchange, "grace_seconds", 0.2)
    env = adapted(kind, failing("die", row), max_concurrency=1)
    env.step(ACTIONS)
    with pytest.raises(sb3compat.WorkerError, match="has died"):
        env.step(ACTIONS)


@kind_of
@pytest.mark.parametrize("how", ["raise", "unpicklable", "die"])
def test_error_in_render_arrives(kind: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_ERROR_SECONDS", 0.2)
    env = adapted(kind, failing(how))
    with pytest.raises(SeveralError if how == "raise" else sb3compat.WorkerError):
        env.get_images()
    check_lost(env)


@kind_of
def test_exception_in_a_method_arrives_with_its_type(kind: str) -> None:
    env = adapted(kind, failing("never"))
    with pytest.raises(SeveralError, match=r"^number 1$") as caught:
        env.env_method("fail_by", "raise", indices=1)
    assert "Traceback" in str(caught.value.__cause__)
    assert env.get_attr("row") == [0, 1]
    env.step(ACTIONS)


@kind_of
@mode_of
def test_exception_in_reset_arrives_with_its_type(kind: str, mode: AutoresetMode) -> None:
    fns = [MakeEnv(script(), 0), lambda: FailingReset(script(), 0)]
    env: Any = sb3compat.to_sb3(KINDS[kind](fns, autoreset_mode=mode))
    _opened.append(env)
    with pytest.raises(SeveralError, match=r"^reset 0$"):
        env.reset()
    check_lost(env)


@kind_of
@mode_of
def test_exception_in_the_reset_within_a_step_arrives_with_its_type(
    kind: str, mode: AutoresetMode
) -> None:
    chosen = script(lengths=(1,))
    fns = [MakeEnv(chosen, 0), lambda: FailingReset(chosen, 1)]
    env = adapted(kind, fns, autoreset_mode=mode)
    with pytest.raises(SeveralError, match=r"^reset 1$"):
        env.step(ACTIONS)
    check_lost(env)


@kind_of
def test_error_of_the_first_row_is_raised_of_several(kind: str) -> None:
    env = adapted(kind, [lambda i=i: Failing(i) for i in (5, 3, 4)])
    env.step(np.zeros(3, int))
    with pytest.raises(SeveralError, match=r"^number 5$"):
        env.step(np.zeros(3, int))


def test_worker_that_hangs_is_a_timeout_error() -> None:
    env = adapted("bare", failing("hang"), timeout=0.2)
    env.step(ACTIONS)
    with pytest.raises(sb3compat.WorkerTimeoutError, match=r"row 1 .* timeout=0\.2") as caught:
        env.step(ACTIONS)
    assert isinstance(caught.value, TimeoutError)
    check_lost(env)


@pytest.mark.parametrize("mode", MODES, ids=[mode.name for mode in MODES])
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "unshared"])
@pytest.mark.parametrize("use", ["reset", "step"])
def test_stopped_worker_is_a_timeout_error(
    use: str, shared: bool, mode: AutoresetMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipes, "_TERMINATE_SECONDS", 0.1)
    env: Any = sb3compat.to_sb3(
        AsyncVectorEnv(failing("never"), shared_memory=shared, autoreset_mode=mode), timeout=20.0
    )
    _opened.append(env)
    env.reset()
    env._source._timeout = 0.2
    os.kill(env.env_method("pid", indices=1)[0], signal.SIGSTOP)
    with pytest.raises(sb3compat.WorkerTimeoutError, match=r"row 1 .* timeout=0\.2"):
        env.reset() if use == "reset" else env.step(ACTIONS)
    check_lost(env)
    env.close()  # as long as the patch holds


@kind_of
@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
def test_interrupt_in_a_step_loses_the_workers(kind: str, error: type[BaseException]) -> None:
    """An interrupt of the user, or the exception of a signal handler that limits the time."""

    def interrupt(*_: Any) -> None:
        raise error

    env = adapted(kind, failing("hang"))
    env.step(ACTIONS)
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    with pytest.raises(error):
        env.step(ACTIONS)
    signal.signal(signal.SIGALRM, before)
    check_lost(env)
