"""Workers of a `SubprocVecEnv` that die or hang under SB3's wrappers, and wrappers that fail."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import sb3compat
from sb3compat._ipc import pipes, subproc_vec_env
from tests.interrupts import Counting, counting, within
from tests.lockstep import same

vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")

ACTIONS = np.zeros(2, np.int64)


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    with within(120):
        yield


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that hang are given up at once."""
    monkeypatch.setattr(pipes, "_TERMINATE_SECONDS", 0.1)
    monkeypatch.setattr(subproc_vec_env, "_CLOSE_SECONDS", 0.1)


class Repeat(vec_env.VecEnvWrapper):  # type: ignore[misc]
    """Repeats each action: it steps in `step_wait`, after the step that was started."""

    def reset(self) -> Any:
        return self.venv.reset()

    def step_async(self, actions: Any) -> None:
        self.actions = actions
        self.venv.step_async(actions)

    def step_wait(self) -> Any:
        _, first, dones, _ = self.venv.step_wait()
        obs, rewards, again, infos = self.venv.step(self.actions)
        return obs, first + rewards, dones | again, infos


class RepeatAll(Repeat):
    """The same, but that it starts nothing in `step_async`."""

    def step_async(self, actions: Any) -> None:
        self.actions = actions

    def step_wait(self) -> Any:
        self.venv.step_async(self.actions)
        return super().step_wait()


class Three(Counting):
    """No episode ends in the steps of a test."""

    def step(self, action: Any) -> Any:
        obs, reward, _, _, info = super().step(action)
        return obs, reward, False, False, info


def subproc(cls: Any = Three, start_method: str = "fork") -> Any:
    fns = [lambda row=row: cls(row) for row in range(2)]
    return vec_env.SubprocVecEnv(fns, start_method=start_method)


@pytest.mark.parametrize("wrapper", [Repeat, RepeatAll])
@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
def test_wrapper_that_steps_in_step_wait(wrapper: Any, mode: str) -> None:
    dummy = vec_env.DummyVecEnv([lambda row=row: Three(row) for row in range(2)])
    expected = sb3compat.to_gymnasium(wrapper(dummy), autoreset_mode=mode)
    envs = sb3compat.to_gymnasium(wrapper(subproc()), autoreset_mode=mode)
    same(envs.reset(seed=3), expected.reset(seed=3))
    for _ in range(3):
        got, wanted = envs.step(ACTIONS), expected.step(ACTIONS)
        same(got[0], wanted[0])
        np.testing.assert_array_equal(got[1], wanted[1])
    envs.close()
    assert not any(process.is_alive() for process in envs.vec_env.unwrapped.processes)


USES: dict[str, Callable[[Any], Any]] = {
    "step": lambda envs: envs.step(ACTIONS),
    "reset": lambda envs: envs.reset(),
    "render": lambda envs: envs.render(),
    "call": lambda envs: envs.call("add", 1),
    "get_attr": lambda envs: envs.get_attr("row"),
    "set_attr": lambda envs: envs.set_attr("mark", 1),
    "get_attr of SB3": lambda envs: envs.vec_env.get_attr("row"),
    "env_method of SB3": lambda envs: envs.vec_env.env_method("add", 1),
}
WRAPPED: dict[str, Callable[[Any], Any]] = {
    "plain": lambda venv: venv,
    "wrapped": vec_env.VecMonitor,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", WRAPPED)
@pytest.mark.parametrize("row", [0, 1])
def test_dead_worker_is_an_error_in_every_call(use: str, kind: str, row: int) -> None:
    """Forked workers hold each other's pipes open: SB3 alone would wait for ever."""
    envs = sb3compat.to_gymnasium(WRAPPED[kind](subproc()))
    envs.reset()
    processes = envs.vec_env.unwrapped.processes
    os.kill(processes[row].pid, signal.SIGKILL)
    processes[row].join()
    with pytest.raises(sb3compat.WorkerError, match=f"row {row} has died without an answer"):
        USES[use](envs)
    for other in ("step", "reset", "call", "render"):
        with pytest.raises(sb3compat.WorkerError, match=r"Close this environment|has died"):
            USES[other](envs)
    envs.close()
    assert not any(process.is_alive() for process in processes)


class Failing(vec_env.VecEnvWrapper):  # type: ignore[misc]
    """Raises what it is told, after the step or the reset."""

    error: Exception | None = None
    closed_by_us = False

    def reset(self) -> Any:
        return self._after(self.venv.reset())

    def step_wait(self) -> Any:
        return self._after(self.venv.step_wait())

    def close(self) -> None:
        self.closed_by_us = True
        super().close()

    def _after(self, result: Any) -> Any:
        if self.error is not None:
            raise self.error
        return result


@pytest.mark.parametrize(
    "error",
    [TimeoutError("slow"), ConnectionError("no"), BrokenPipeError(32, "no"), EOFError("end")],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("use", ["step", "reset"])
def test_error_of_a_wrapper_is_no_dead_worker(error: Exception, use: str) -> None:
    envs = sb3compat.to_gymnasium(Failing(subproc(Counting)))
    envs.reset()
    envs.vec_env.error = error
    with pytest.raises(type(error)) as caught:
        USES[use](envs)
    assert caught.value is error
    envs.vec_env.error = None
    # An ending may be lost with it.
    with pytest.raises(RuntimeError, match=r"Expected reset\(\)"):
        envs.step(ACTIONS)
    obs, _ = envs.reset(seed=4)
    assert obs[:, 1].tolist() == [4, 5]
    envs.step(ACTIONS)
    envs.close()
    assert envs.vec_env.closed_by_us


def test_close_after_a_death_closes_the_wrappers() -> None:
    envs = sb3compat.to_gymnasium(Failing(subproc()))
    envs.reset()
    os.kill(envs.vec_env.unwrapped.processes[1].pid, signal.SIGKILL)
    with pytest.raises(sb3compat.WorkerError, match="has died"):
        envs.step(ACTIONS)
    envs.close()
    assert envs.vec_env.closed_by_us
    assert not any(process.is_alive() for process in envs.vec_env.unwrapped.processes)


class ClosingFails(Failing):
    def close(self) -> None:
        raise OSError(28, "No space left on device")


def test_error_of_a_wrapper_in_close_arrives_and_the_processes_end() -> None:
    venv = subproc()
    envs = sb3compat.to_gymnasium(ClosingFails(venv))
    envs.reset()
    with pytest.raises(OSError, match="No space left"):
        envs.close()
    assert not any(process.is_alive() for process in venv.processes)


class Stubborn(Three):
    """Row 1 hangs in its second step, and cannot be ended by SIGTERM or stops itself."""

    how = "ignore"

    def step(self, action: Any) -> Any:
        if self.row == 1 and self.time == 1:
            if self.how == "ignore":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                os.kill(os.getppid(), signal.SIGUSR1)
                threading.Event().wait()
            os.kill(os.getppid(), signal.SIGUSR1)
            os.kill(os.getpid(), signal.SIGSTOP)
        return super().step(action)


class Stopped(Stubborn):
    how = "stop"


@pytest.mark.parametrize("cls", [Stubborn, Stopped])
@pytest.mark.parametrize("kind", WRAPPED)
def test_close_ends_a_worker_that_survives_sigterm(kind: str, cls: Any, quick: None) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    envs = sb3compat.to_gymnasium(WRAPPED[kind](subproc(cls)))
    processes = envs.vec_env.unwrapped.processes
    envs.reset()
    envs.step(ACTIONS)
    before = signal.signal(signal.SIGUSR1, interrupt)
    with pytest.raises(KeyboardInterrupt):
        envs.step(ACTIONS)
    signal.signal(signal.SIGUSR1, before)
    for use in ("step", "reset", "call"):
        with pytest.raises(sb3compat.WorkerError, match="Close this environment"):
            USES[use](envs)
    envs.close()
    assert not any(process.is_alive() for process in processes)


@pytest.mark.parametrize("kind", WRAPPED)
def test_vec_env_that_is_driven_directly_after_an_interrupt_is_refused(kind: str) -> None:
    """Its own `reset` would get the answer to the step."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    venv = subproc(Stubborn)
    envs = sb3compat.to_gymnasium(WRAPPED[kind](venv))
    envs.reset()
    envs.step(ACTIONS)
    before = signal.signal(signal.SIGUSR1, interrupt)
    with pytest.raises(KeyboardInterrupt):
        envs.step(ACTIONS)
    signal.signal(signal.SIGUSR1, before)
    with pytest.raises(sb3compat.WorkerError, match="Close this environment"):
        venv.reset()
    for process in venv.processes:
        process.kill()
    envs.close()


def test_vec_env_can_still_be_driven_directly() -> None:
    venv = vec_env.SubprocVecEnv(counting(), start_method="fork")
    envs = sb3compat.to_gymnasium(vec_env.VecMonitor(venv))
    envs.reset(seed=1)
    venv.seed(5)
    obs = venv.reset()
    assert obs[:, 1].tolist() == [5, 6]
    venv.step_async(ACTIONS)
    for use, message in (("step", "Expected reset()"), ("reset", "Call its step_wait() first")):
        with pytest.raises(RuntimeError, match=re.escape(message)):
            USES[use](envs)
    venv.step_wait()
    assert venv.get_attr("row") == [0, 1]
    again = sb3compat.to_gymnasium(venv)
    assert again.reset(seed=9)[0][:, 1].tolist() == [9, 10]
    assert envs.reset(seed=7)[0][:, 1].tolist() == [7, 8]
    envs.close()
