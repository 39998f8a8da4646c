"""Faults in workers: the true error arrives with its row, closing works, nothing is left behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import sb3compat
from sb3compat import ParallelVecEnv
from sb3compat._parallel import processes
from tests.envs import MakeEnv, script
from tests.interrupts import attempt, count, counting, interrupt, points, within
from tests.lockstep import same
from tests.parallel.teams import KINDS, children, forked, parts_of
from tests.profiles import nightly
from tests.to_sb3.test_faults import Failing, FailingReset, SeveralError

N = 5
ACTIONS = np.zeros(N, int)
_opened: list[ParallelVecEnv] = []


@pytest.fixture(autouse=True)
def _nobody_is_left() -> Iterator[None]:
    yield
    while _opened:
        env = _opened.pop()
        env.close()
        env.close()
    gc.collect()
    assert not children()


def opened(fns: list[Any], workers: int = 2, **kwargs: Any) -> ParallelVecEnv:
    env = forked(fns, workers, **kwargs)
    _opened.append(env)
    env.reset()
    return env


def failing(how: str, row: int = 3, **kwargs: Any) -> list[Any]:
    fns: list[Any] = [MakeEnv(script(**kwargs), i) for i in range(N)]
    fns[row] = lambda: Failing(row, how)
    return fns


def check_lost(env: Any) -> None:
    for use in (
        lambda: env.step(ACTIONS),
        env.reset,
        lambda: env.get_attr("row", indices=0),
        lambda: env.env_method("set_mu", 1, indices=[0]),
        env.get_images,
    ):
        with pytest.raises(sb3compat.WorkerError, match="build a new one"):
            use()


def pids(env: Any) -> list[int]:
    return [env.env_method("pid", indices=rows[0])[0] for rows in env.rows_of_worker]


class WithPid(Failing):
    def __init__(self, row: int) -> None:
        super().__init__(row, "never")


def with_pids() -> list[Any]:
    return [lambda i=i: WithPid(i) for i in range(N)]


@pytest.mark.parametrize("row", [0, 3])
def test_error_in_a_step_arrives_with_type_traceback_and_row_and_a_reset_goes_on(row: int) -> None:
    env = opened(failing("raise", row))
    env.step(ACTIONS)
    with pytest.raises(SeveralError, match=rf"^number {row}$") as caught:
        env.step(ACTIONS)
    for part in (f"in the worker of row {row}:", "Traceback", "SeveralError: number"):
        assert part in str(caught.value.__cause__)
    with pytest.raises(sb3compat.errors.CallOrderError, match="reset"):
        env.step(ACTIONS)
    env.reset()
    env.step(ACTIONS)


def test_message_with_percent_signs_arrives_unchanged() -> None:
    env = opened(failing("percent"))
    env.step(ACTIONS)
    with pytest.raises(ValueError, match=r"^%d is bad$"):
        env.step(ACTIONS)


def test_exception_of_a_local_class_arrives_under_its_name() -> None:
    env = opened(failing("unpicklable"))
    env.step(ACTIONS)
    with pytest.raises(Exception) as caught:  # noqa: PT011
        env.step(ACTIONS)
    assert type(caught.value).__name__ == "LocalError"


def test_error_of_the_first_row_is_raised_of_several() -> None:
    env = opened([lambda i=i: Failing(i) for i in range(N)])
    env.step(ACTIONS)
    with pytest.raises(SeveralError, match=r"^number 0$"):
        env.step(ACTIONS)


def test_errors_in_reset_and_in_the_reset_within_a_step_name_the_row() -> None:
    chosen = script(lengths=(1,))
    fns: list[Any] = [MakeEnv(chosen, i) for i in range(N)]
    fns[3] = lambda: FailingReset(chosen, 1)
    env = opened(fns)
    with pytest.raises(SeveralError, match=r"^reset 1$") as caught:
        env.step(ACTIONS)
    assert "in the worker of row 3:" in str(caught.value.__cause__)
    fns[3] = lambda: FailingReset(chosen, 0)
    with pytest.raises(SeveralError, match=r"^reset 0$") as caught:
        opened(fns)
    assert "in the worker of row 3:" in str(caught.value.__cause__)


def test_error_in_a_method_arrives_and_the_worker_goes_on() -> None:
    env = opened(failing("never"))
    with pytest.raises(SeveralError, match=r"^number 3$") as caught:
        env.env_method("fail_by", "raise", indices=[3])
    assert "in the worker of row 3:" in str(caught.value.__cause__)
    with pytest.raises(AttributeError, match="nothing"):
        env.get_attr("nothing", indices=1)
    env.step(ACTIONS)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("dummy",)])
def test_error_in_a_part_of_several_rows_arrives(kind: str) -> None:
    fns = failing("raise", 3)
    env = opened(parts_of(fns, [("single", 1), (kind, 3), ("single", 1)]), 1)
    env.step(ACTIONS)
    with pytest.raises(SeveralError, match=r"^number 3$") as caught:
        env.step(ACTIONS)
    assert "Traceback" in str(caught.value.__cause__)


def test_wrong_shape_names_the_row_among_all() -> None:
    class Wrong(Failing):
        def step(self, action: Any) -> Any:
            return np.zeros(7, np.float32), 0.0, False, False, {}

    fns: list[Any] = failing("never")
    fns[4] = lambda: Wrong(4, "never")
    env = opened(fns)
    with pytest.raises(sb3compat.ConversionError, match=r"row 4 gave shape=\(7,\)"):
        env.step(ACTIONS)


def test_infos_that_cannot_be_pickled_are_refused() -> None:
    class Generating(Failing):
        def step(self, action: Any) -> Any:
            return (*super().step(action)[:4], {"made": iter(x for x in [1])})

    fns: list[Any] = failing("never")
    fns[4] = lambda: Generating(4, "never")
    env = opened(fns)
    with pytest.raises((sb3compat.ConversionError, TypeError), match="pickle"):
        env.step(ACTIONS)


@pytest.mark.parametrize("row", [0, 3])
def test_worker_that_dies_in_a_step_is_named_with_its_rows(row: int) -> None:
    env = opened(failing("die", row))
    env.step(ACTIONS)
    rows = "rows 0 to 2" if row == 0 else "rows 3 to 4"
    with pytest.raises(sb3compat.WorkerError, match=f"{rows} has died"):
        env.step(ACTIONS)
    check_lost(env)


@pytest.mark.parametrize(
    "use", [lambda env: env.step(ACTIONS), lambda env: env.reset(), lambda env: env.get_images()]
)
def test_killed_worker_is_named(use: Callable[[Any], Any]) -> None:
    env = opened(with_pids())
    os.kill(pids(env)[1], signal.SIGKILL)
    with pytest.raises(sb3compat.WorkerError, match="rows 3 to 4 has died"):
        use(env)
    check_lost(env)


def test_worker_that_hangs_is_a_timeout_error_and_close_ends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "_CLOSE_SECONDS", 0.2)
    env = opened(failing("hang"), timeout=0.3)
    env.step(ACTIONS)
    with pytest.raises(sb3compat.WorkerTimeoutError, match=r"rows 3 to 4 .* timeout=0\.3") as info:
        env.step(ACTIONS)
    assert isinstance(info.value, TimeoutError)
    with pytest.raises(sb3compat.errors.CallOrderError):
        env.step(ACTIONS)
    with pytest.raises(sb3compat.WorkerTimeoutError):
        env.reset()


class Waiting(Failing):
    """Its second step waits until a file is there."""

    def __init__(self, row: int, path: Path) -> None:
        super().__init__(row, "never")
        self.path = path

    def step(self, action: Any) -> Any:
        while self._time == 1 and not self.path.exists():
            time.sleep(0.001)
        return super().step(action)


@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
def test_interrupt_in_a_step_leaves_no_answer_for_the_next_call(
    error: type[BaseException], tmp_path: Path
) -> None:
    def interrupt(*_: Any) -> None:
        raise error

    path = tmp_path / "go"
    fns = failing("never")
    fns[4] = lambda: Waiting(4, path)
    env = opened(fns)
    env.step(ACTIONS)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(error):
            env.step(ACTIONS)
    finally:
        signal.signal(signal.SIGALRM, before)
    path.touch()
    with pytest.raises(sb3compat.errors.CallOrderError):
        env.step(ACTIONS)
    assert env.get_attr("row") == list(range(N))
    env.seed(5)
    first = env.reset()
    again = forked([MakeEnv(script(), i) for i in range(N)], 1)
    _opened.append(again)
    again.seed(5)
    again.reset()  # the same number of resets
    again.seed(5)
    np.testing.assert_array_equal(first, again.reset())
    np.testing.assert_array_equal(env.step(ACTIONS)[0], again.step(ACTIONS)[0])


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "step": lambda env: env.step(np.zeros(3, int)),
    "reset": lambda env: env.reset(),
    "get_attr": lambda env: env.get_attr("row"),
    "get_images": lambda env: env.get_images(),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("policy", ["raise", "restart"])
def test_interrupt_at_any_point_leaves_no_answer_for_the_next_call(name: str, policy: str) -> None:
    from stable_baselines3.common.vec_env import DummyVecEnv

    def started() -> ParallelVecEnv:
        return opened(counting(3), on_worker_lost=policy)

    env = started()
    expected = transcript(DummyVecEnv(counting(3)))
    total = count(lambda: OPERATIONS[name](env))
    for at, error in points(total, 400):
        where = f"{name}, {error.__name__} at point {at} of {total}"
        with within(120):
            raised = interrupt(lambda env=env: OPERATIONS[name](env), at, error)
            got, lost = attempt(lambda env=env: read_and_reset(env), sb3compat.WorkerError)
        if lost is not None:  # a worker of which is not known whether it got its message
            assert "died" in str(lost), f"{where}: {lost}"
            env = started()
        else:
            same(got, expected, f"{where}: {raised}")


def read_and_reset(env: Any) -> Any:
    with suppress(sb3compat.errors.CallOrderError):
        assert env.env_method("add", 3, indices=[2, 0]) == [5, 3]
    return transcript(env)


def transcript(env: Any) -> Any:
    env.seed(7)
    results: list[Any] = [(env.reset(), list(env.reset_infos))]
    results += [(env.step(np.zeros(3, int)), list(env.reset_infos)) for _ in range(4)]
    return results


class Odd:
    """Cannot be unpickled."""

    def __reduce__(self) -> Any:
        return int, ("not a number",)


class WithOdd(Failing):
    def __init__(self, row: int) -> None:
        super().__init__(row, "never")

    def odd(self) -> Odd:
        return Odd()

    def step(self, action: Any) -> Any:
        *result, info = super().step(action)
        return *result, info | ({"odd": Odd()} if action else {})


def test_answer_that_cannot_be_unpickled_is_an_error_and_the_next_call_goes_on() -> None:
    env = opened([lambda i=i: WithOdd(i) for i in range(N)])
    with within(60):
        with pytest.raises(ValueError, match="not a number"):
            env.env_method("odd", indices=1)
        assert env.get_attr("row") == list(range(N))
        with pytest.raises(ValueError, match="not a number"):
            env.step(np.arange(N))
        with pytest.raises(sb3compat.errors.CallOrderError, match="reset"):
            env.step(ACTIONS)
        env.reset()
        env.step(ACTIONS)


def test_interrupt_while_a_step_is_sent_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    env = opened(failing("never"))

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(processes.PatientExchange, "send", interrupt)
        with pytest.raises(KeyboardInterrupt):
            env.step(ACTIONS)
    with pytest.raises(sb3compat.errors.CallOrderError, match="reset"):
        env.step(ACTIONS)
    env.reset()
    env.step(ACTIONS)


def test_error_of_a_function_ends_all_workers() -> None:
    def fails() -> gym.Env[Any, Any]:
        raise SeveralError(1, "make")

    with pytest.raises(SeveralError, match=r"^make 1$") as caught:
        forked([*failing("never"), fails], 3)
    assert "in the worker of env_fns[5]:" in str(caught.value.__cause__)


def test_worker_that_dies_while_it_makes_its_parts_is_named() -> None:
    def dies() -> gym.Env[Any, Any]:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    with pytest.raises(sb3compat.WorkerError, match=r"env_fns\[4\] to env_fns\[5\] has died"):
        forked([*failing("never"), dies], 3)


def test_error_in_close_arrives_and_all_workers_end() -> None:
    class Clinging(Failing):
        def close(self) -> None:
            raise SeveralError(self.row, "close")

    env = forked([*failing("never"), lambda: Clinging(5)], 2)
    with pytest.raises(SeveralError, match=r"^close 5$"):
        env.close()
    env.close()


def test_forgotten_environment_ends_its_workers() -> None:
    env = forked(failing("never"), 2)
    assert len(children()) == 2
    del env
    gc.collect()
    assert not children()


# --- on_worker_lost="restart" -----------------------------------------------------------------


def test_rows_of_a_lost_worker_end_as_truncated() -> None:
    env = opened(with_pids(), on_worker_lost="restart")
    before = env.step(ACTIONS)[0].copy()
    held = env.step(ACTIONS)[0]
    last = held.copy()
    held[...] = 9  # what a user does with the observations has no effect
    os.kill(pids(env)[1], signal.SIGKILL)
    obs, rewards, dones, infos = env.step(ACTIONS)
    assert not np.array_equal(before, last)
    assert dones.tolist() == [True] * 5  # the others by their script
    assert rewards[3:].tolist() == [0, 0]
    for row in (3, 4):
        assert infos[row].keys() == {
            "sb3compat.worker_lost", "TimeLimit.truncated", "terminal_observation",
        }  # fmt: skip
        assert infos[row]["TimeLimit.truncated"] is True
        assert infos[row]["sb3compat.worker_lost"] is True
        np.testing.assert_array_equal(infos[row]["terminal_observation"], last[row])
        assert env.reset_infos[row]["resets"] == 1
    assert all("sb3compat.worker_lost" not in infos[row] for row in range(3))
    fresh = WithPid(3)
    np.testing.assert_array_equal(obs[3], fresh.reset()[0])
    assert not env.step(ACTIONS)[2].any()


def test_reset_after_a_loss_is_exact() -> None:
    env = opened(with_pids(), on_worker_lost="restart")
    os.kill(pids(env)[0], signal.SIGKILL)
    env.seed(3)
    obs = env.reset()
    single = WithPid(0)
    np.testing.assert_array_equal(obs[0], single.reset(seed=3)[0])


def test_loss_before_the_first_reset_is_an_error_and_a_reset_goes_on() -> None:
    env = forked(with_pids(), 2, on_worker_lost="restart")
    _opened.append(env)
    os.kill(pids(env)[0], signal.SIGKILL)
    with pytest.raises(sb3compat.WorkerError, match="rows 0 to 2"):
        env.step(ACTIONS)
    env.reset()
    env.step(ACTIONS)


def test_method_of_a_lost_worker_is_an_error_until_the_next_step() -> None:
    env = opened(with_pids(), on_worker_lost="restart")
    os.kill(pids(env)[0], signal.SIGKILL)
    with pytest.raises(sb3compat.WorkerError, match="rows 0 to 2 has died"):
        env.get_attr("row")
    assert env.get_attr("row", indices=[4]) == [4]
    assert env.step(ACTIONS)[2][:3].all()
    assert env.get_attr("row") == list(range(N))


def test_worker_that_dies_again_while_it_is_replaced_is_an_error(tmp_path: Path) -> None:
    flag = tmp_path / "second"

    def dies_the_second_time() -> gym.Env[Any, Any]:
        if flag.exists():
            os.kill(os.getpid(), signal.SIGKILL)
        flag.touch()
        return WithPid(0)

    env = opened([*with_pids()[:4], dies_the_second_time], on_worker_lost="restart")
    os.kill(pids(env)[1], signal.SIGKILL)
    with pytest.raises(sb3compat.WorkerError, match="has died while it made them"):
        env.step(ACTIONS)


@pytest.mark.parametrize("policy", ["raise", "restart"])
def test_random_kills_are_clear_errors_or_restarts(policy: str) -> None:
    rng = np.random.default_rng(0)
    program: tuple[Callable[[Any], Any], ...] = (
        lambda env: env.step(ACTIONS),
        lambda env: env.reset(),
        lambda env: env.get_attr("row"),
    )
    for _ in range(150 if nightly() else 10):
        env = forked(with_pids(), int(rng.integers(1, 4)), on_worker_lost=policy)
        env.reset()
        victim = int(rng.choice(pids(env)))
        killer = subprocess.Popen(
            [sys.executable, "-S", "-c",
             f"import os, time; time.sleep({rng.random() * 0.02}); os.kill({victim}, 9)"]
        )  # fmt: skip
        while killer.poll() is None:
            for use in program:
                with suppress(sb3compat.WorkerError, sb3compat.errors.CallOrderError):
                    use(env)
        if policy == "restart":
            env.reset()
            assert not env.step(ACTIONS)[2].any()
        else:
            for use in program:
                with pytest.raises(sb3compat.WorkerError, match="has died"):
                    use(env)
        env.close()
        assert not children()
