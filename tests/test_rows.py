from __future__ import annotations

import os
import signal
import threading
import warnings
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import AlreadyPendingCallError
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

import sb3compat
from sb3compat.batching import Observations
from sb3compat.rows import RepeatWatch
from tests.envs import Identity, MakeEnv, ScriptedEnv, script


class SeveralError(Exception):
    def __init__(self, number: int, text: str) -> None:
        super().__init__(f"{text} {number}")


class Failing(ScriptedEnv):
    """Raises in its second step."""

    def step(self, action: Any) -> Any:
        if self._time == 1:
            raise SeveralError(self.row, "number")
        return super().step(action)

    def refuse(self) -> None:
        raise SeveralError(self.row, "refused")

    def pid(self) -> int:
        return os.getpid()


MODES = list(AutoresetMode)
mode_of = pytest.mark.parametrize("mode", MODES, ids=[mode.name for mode in MODES])


@mode_of
def test_an_error_in_a_worker(mode: AutoresetMode) -> None:
    fns: list[Any] = [MakeEnv(script(), 0), lambda: Failing(script(), 1)]
    source = AsyncVectorEnv(fns, autoreset_mode=mode)
    env = sb3compat.to_sb3(source)
    env.reset()
    env.step(np.zeros(2, int))
    with pytest.raises(Exception, match="1") as caught:
        env.step(np.zeros(2, int))
    assert type(caught.value).__name__ == "SeveralError"
    for part in ("worker of row 1", "Traceback", "SeveralError: number"):
        assert part in str(caught.value.__cause__)
    with pytest.raises(sb3compat.WorkerError, match="build a new one"):
        env.step(np.zeros(2, int))
    with pytest.raises(sb3compat.WorkerError, match="build a new one"):
        env.reset()
    env.close()
    env.close()
    assert not any(process.is_alive() for process in source.processes)


def test_a_worker_that_was_killed() -> None:
    source = AsyncVectorEnv([lambda: Failing(script(), i) for i in range(2)])
    env = sb3compat.to_sb3(source)
    env.reset()
    os.kill(env.env_method("pid", indices=1)[0], signal.SIGKILL)
    source.processes[1].join()
    with pytest.raises(sb3compat.WorkerError, match="row 1 has died"):
        env.step(np.zeros(2, int))
    with pytest.raises(sb3compat.WorkerError, match="build a new one"):
        env.reset()
    env.close()
    assert not any(process.is_alive() for process in source.processes)


def test_a_call_under_way_before_adapting() -> None:
    source = AsyncVectorEnv([MakeEnv(script(), 0)])
    source.reset_async()
    with pytest.raises(RuntimeError, match="pending 'reset'"):
        sb3compat.to_sb3(source)
    source.reset_wait()
    env = sb3compat.to_sb3(source)
    env.reset()
    env.step_async(np.zeros(1, int))
    with pytest.raises(AlreadyPendingCallError):  # the environment itself knows, too
        source.step(np.zeros(1, int))
    env.close()


def test_close_with_a_step_under_way() -> None:
    source = AsyncVectorEnv([MakeEnv(script(), i) for i in range(2)])
    env = sb3compat.to_sb3(source)
    env.reset()
    env.step_async(np.zeros(2, int))
    env.close()
    assert not any(process.is_alive() for process in source.processes)


def test_integers_that_repeat_now_and_then_do_not_warn() -> None:
    observations = Observations(spaces.Box(0, 9, (2,), np.int8), 1)
    watch = RepeatWatch()
    batch = [np.array([[1, 2]], np.int8)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watch.note(0, observations, np.array([1, 3], np.int8), batch)
        for _ in range(20):
            watch.note(0, observations, np.array([1, 2], np.int8), batch)


def test_a_step_under_way_that_is_not_ours() -> None:
    source = AsyncVectorEnv([MakeEnv(script(), 0)])
    env = sb3compat.to_sb3(source)
    env.reset()
    source.step_async(np.zeros(1, int))
    for use in (lambda: env.step(np.zeros(1, int)), lambda: env.get_attr("row"), env.reset):
        with pytest.raises(RuntimeError, match="pending 'step'"):
            use()
    source.step_wait()
    env.reset()
    env.step(np.zeros(1, int))
    env.close()


def test_an_exception_that_cannot_be_pickled() -> None:
    class LocalError(Exception):
        pass

    class Raises(ScriptedEnv):
        def step(self, action: Any) -> Any:
            raise LocalError

    env = sb3compat.to_sb3(AsyncVectorEnv([lambda: Raises(script())]))
    env.reset()
    with pytest.raises(sb3compat.WorkerError, match="cannot be pickled"):
        env.step(np.zeros(1, int))
    env.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_wrong_shape_without_and_with_shared_memory(mode: AutoresetMode) -> None:
    class Wrong(ScriptedEnv):
        def step(self, action: Any) -> Any:
            obs, *rest = super().step(action)
            return obs[:2], *rest

    env = sb3compat.to_sb3(
        AsyncVectorEnv([lambda: Wrong(script())], shared_memory=False, autoreset_mode=mode)
    )
    env.reset()
    with pytest.raises(sb3compat.ConversionError, match=r"shape \(3,\)"):
        env.step(np.zeros(1, int))
    env.reset()
    env.close()


@pytest.mark.parametrize("wrapped", [False, True])
def test_an_exception_in_a_method_arrives_as_it_is(wrapped: bool) -> None:
    source = AsyncVectorEnv([lambda: Failing(script(), 0), lambda: Failing(script(), 1)])
    env = sb3compat.to_sb3(Identity(source) if wrapped else source)
    env.reset()
    with pytest.raises(SeveralError, match=r"^refused 1$") as caught:
        env.env_method("refuse", indices=1)
    assert "Traceback" in str(caught.value.__cause__)
    for use in (lambda: env.step(np.zeros(2, int)), env.reset, lambda: env.get_attr("row")):
        with pytest.raises(sb3compat.WorkerError, match="build a new one"):
            use()
    env.close()
    env.close()
    assert not any(process.is_alive() for process in source.processes)


def test_an_exception_in_reset() -> None:
    class FailingReset(Failing):
        def reset(self, **kwargs: Any) -> Any:
            raise SeveralError(self.row, "reset")

    source = AsyncVectorEnv([MakeEnv(script(), 0), lambda: FailingReset(script(), 1)])
    env = sb3compat.to_sb3(source)
    with pytest.raises(SeveralError, match=r"^reset 1$"):
        env.reset()
    env.close()
    assert not any(process.is_alive() for process in source.processes)


def test_the_first_of_several_errors() -> None:
    source = AsyncVectorEnv([lambda i=i: Failing(script(), i) for i in (5, 3, 4)])
    env = sb3compat.to_sb3(source)
    env.reset()
    env.step(np.zeros(3, int))
    with pytest.raises(SeveralError, match=r"^number 5$"):
        env.step(np.zeros(3, int))
    env.close()


class Hanging(ScriptedEnv):
    def step(self, action: Any) -> Any:
        threading.Event().wait()  # for ever


def test_a_worker_that_hangs() -> None:
    source = AsyncVectorEnv([lambda: Hanging(script()), MakeEnv(script(), 1)])
    env = sb3compat.to_sb3(source, timeout=0.2)
    env.reset()
    with pytest.raises(sb3compat.WorkerTimeoutError, match=r"row 0 .* timeout=0\.2") as caught:
        env.step(np.zeros(2, int))
    assert isinstance(caught.value, TimeoutError)
    with pytest.raises(sb3compat.WorkerError, match="build a new one"):
        env.step(np.zeros(2, int))
    env.close()
    assert not any(process.is_alive() for process in source.processes)


def test_an_interrupt_in_a_step() -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    source = AsyncVectorEnv([lambda: Hanging(script()), MakeEnv(script(), 1)])
    env = sb3compat.to_sb3(source)
    env.reset()
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    with pytest.raises(KeyboardInterrupt):
        env.step(np.zeros(2, int))
    signal.signal(signal.SIGALRM, before)
    with pytest.raises(sb3compat.WorkerError, match="build a new one"):
        env.step(np.zeros(2, int))
    env.close()
    assert not any(process.is_alive() for process in source.processes)


def test_a_timeout_where_nothing_heeds_it() -> None:
    source = AsyncVectorEnv([MakeEnv(script(), 0)])
    with pytest.raises(ValueError, match="timeout=None"):
        sb3compat.to_sb3(Identity(source), timeout=3)
    source.close()
