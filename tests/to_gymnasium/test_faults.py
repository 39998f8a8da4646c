"""After a refusal, an error or the death of a worker: no step is lost silently, nothing hangs."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import sb3compat
from tests.envs import Returns, fns
from tests.interrupts import Counting, counting, no_hang
from tests.lockstep import same
from tests.lockstep_back import dummy, monitored, subproc
from tests.parallel.teams import forked
from tests.vec_wrappers import HandsOn

vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")

ACTIONS = np.zeros(2, np.int64)
WRAPPED: dict[str, Callable[[Any], Any]] = {
    "plain": lambda venv: venv,
    "wrapped": vec_env.VecMonitor,
}
wrapped_or_not = pytest.mark.parametrize("kind", WRAPPED)


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    with no_hang():
        yield


def fails(*_: Any) -> Any:
    raise KeyError("fails")


def second_step(change: Callable[..., Any]) -> Callable[..., Any]:
    """Changes what the second step of an episode returns."""
    return lambda *result: change(*result) if result[4]["shared"] == 2 else result


def second_reset(obs: Any, info: Any) -> Any:
    return fails() if info["resets"] == 2 else (obs, info)


def faulty(**returned: Any) -> list[Callable[[], Any]]:
    """Two rows, of which the second one returns something else."""
    return [*fns(1), partial(Returns, 1, **returned)]


MASK = np.array([True, False])
FAULTS: dict[str, tuple[dict[str, Any], Callable[[Any], Any], type[Exception], str]] = {
    "an error of a step": (
        {"step": second_step(fails)},
        lambda e: e.step(ACTIONS),
        KeyError,
        "fails",
    ),
    "an error of a reset": ({"reset": second_reset}, lambda e: e.reset(), KeyError, "fails"),
    "infos that cannot be joined": (
        {"step": second_step(lambda *result: (*result[:4], {"k": 1, "_k": 2}))},
        lambda e: e.step(ACTIONS),
        sb3compat.ConversionError,
        "'_k' beside 'k'",
    ),
}


BUILDS: dict[str, Callable[[Any], Any]] = {
    "plain": dummy,
    "wrapped": monitored,
    "subproc": subproc,
    "workers": lambda fns: forked(fns, 2),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", BUILDS)
@pytest.mark.parametrize("mode", AutoresetMode)
def test_only_a_reset_of_all_rows_leads_on_after_a_fault(
    kind: str, fault: str, mode: AutoresetMode
) -> None:
    if kind == "wrapped" and mode == AutoresetMode.NEXT_STEP:
        return
    kwargs, use, error, text = FAULTS[fault]
    envs = sb3compat.to_gymnasium(BUILDS[kind](faulty(**kwargs)), autoreset_mode=mode)
    envs.reset()
    envs.step(ACTIONS)
    with pytest.raises(error, match=text):
        use(envs)
    for again in (lambda: envs.step(ACTIONS), lambda: envs.reset(options={"reset_mask": MASK})):
        with pytest.raises(RuntimeError, match=r"Expected reset\(\) without a mask"):
            again()
    envs.reset()
    assert envs.step(ACTIONS)[-1]["shared"].tolist() == [1, 1]


@wrapped_or_not
def test_what_was_set_on_the_vec_env_waits_until_a_reset_succeeds(kind: str) -> None:
    def reset(obs: Any, info: Any) -> Any:
        return fails() if info.get("option") == 13 else (obs, info)

    vec_env = WRAPPED[kind](dummy(faulty(reset=reset)))
    envs = sb3compat.to_gymnasium(vec_env)
    vec_env.seed(5)
    vec_env.set_options([{}, {"x": 13}])
    for _ in range(2):
        with pytest.raises(KeyError, match="fails"):
            envs.reset()
    vec_env.set_options({"x": 1})
    with pytest.raises(KeyError, match="fails"):
        envs.reset(seed=7, options={"x": 13})
    _, infos = envs.reset()
    assert infos["seed"].tolist() == [5, 6]
    assert infos["option"].tolist() == [1, 1]


class Endless(Counting):
    """No episode ends in the steps of a test."""

    def step(self, action: Any) -> Any:
        obs, reward, _, _, info = super().step(action)
        return obs, reward, False, False, info


def in_workers(cls: Any = Endless) -> Any:
    return subproc([partial(cls, row) for row in range(2)])


def assert_ended(processes: Any) -> None:
    assert not any(process.is_alive() for process in processes)


class Repeat(HandsOn):
    """Repeats each action: it steps in `step_wait`, maybe after the step that was started."""

    def __init__(self, venv: Any, starts: bool) -> None:
        super().__init__(venv)
        self.starts = starts

    def step_async(self, actions: Any) -> None:
        self.actions = actions
        if self.starts:
            self.venv.step_async(actions)

    def step_wait(self) -> Any:
        step = self.venv.step_wait() if self.starts else self.venv.step(self.actions)
        obs, rewards, dones, infos = self.venv.step(self.actions)
        return obs, step[1] + rewards, dones | step[2], infos


@pytest.mark.parametrize("starts", [True, False])
def test_wrapper_may_step_in_step_wait(starts: bool) -> None:
    made = [partial(Endless, row) for row in range(2)]
    expected = sb3compat.to_gymnasium(Repeat(dummy(made), starts))
    envs: Any = sb3compat.to_gymnasium(Repeat(in_workers(), starts))
    same(envs.reset(seed=3), expected.reset(seed=3))
    for _ in range(3):
        got, wanted = envs.step(ACTIONS), expected.step(ACTIONS)
        same(got[0], wanted[0])
        np.testing.assert_array_equal(got[1], wanted[1])
    envs.close()
    assert_ended(envs.vec_env.unwrapped.processes)


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


class Failing(vec_env.VecEnvWrapper):
    """Raises the given error, after the step or the reset."""

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


@pytest.mark.parametrize("number", range(len(USES)), ids=USES)
@pytest.mark.parametrize("wrap", [lambda venv: venv, Failing], ids=WRAPPED)
def test_dead_worker_is_an_error_in_every_call(number: int, wrap: Any) -> None:
    """Forked workers hold each other's pipes open: SB3 alone would wait for ever."""
    envs: Any = sb3compat.to_gymnasium(wrap(in_workers()))
    envs.reset()
    processes, row = envs.vec_env.unwrapped.processes, number % 2
    os.kill(processes[row].pid, signal.SIGKILL)
    processes[row].join()
    with pytest.raises(sb3compat.WorkerError, match=f"row {row} has died without an answer"):
        list(USES.values())[number](envs)
    for other in ("step", "reset", "call", "render"):
        with pytest.raises(sb3compat.WorkerError, match=r"Close this environment|has died"):
            USES[other](envs)
    envs.close()
    assert_ended(processes)
    assert getattr(envs.vec_env, "closed_by_us", True)


@pytest.mark.parametrize(
    ("error", "use"), [(BrokenPipeError(32, "no"), "step"), (EOFError("end"), "reset")]
)
def test_error_of_a_wrapper_is_no_dead_worker(error: Exception, use: str) -> None:
    envs: Any = sb3compat.to_gymnasium(Failing(in_workers(Counting)))
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


def test_error_of_a_wrapper_in_close_arrives_and_the_processes_end() -> None:
    wrapped: Any = HandsOn(in_workers())
    wrapped.close = lambda: os.close(-1)
    envs = sb3compat.to_gymnasium(wrapped)
    envs.reset()
    with pytest.raises(OSError, match="Bad file descriptor"):
        envs.close()
    assert_ended(wrapped.unwrapped.processes)


def test_vec_env_can_still_be_driven_directly() -> None:
    venv = subproc(counting())
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
