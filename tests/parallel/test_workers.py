"""What holds wherever workers are: some hang, fail or are lost, and are replaced."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import SyncVectorEnv

import sb3compat
from sb3compat._parallel import exchanges, workers
from tests.interrupts import no_hang
from tests.parallel.failing import ACTIONS, N, WorkerProcess, known, opened, processes_of
from tests.parallel.known import Known, WithOdd
from tests.parallel.teams import forked
from tests.to_sb3.test_faults import SeveralError

Open = Callable[..., Any]


def test_worker_that_hangs_is_a_timeout_error_and_close_ends_it(
    open_in: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_CLOSE_SECONDS", 0.2)
    env = open_in(known("hang"), timeout=60.0)
    processes = processes_of(env)
    env.step(ACTIONS)
    env._source._workers._timeout = 0.5  # to be made, workers may take longer
    with pytest.raises(sb3compat.WorkerTimeoutError, match=r"rows 3 to 4 .* timeout=0\.5") as info:
        env.step(ACTIONS)
    assert isinstance(info.value, TimeoutError)
    with pytest.raises(sb3compat.errors.CallOrderError):
        env.step(ACTIONS)
    with pytest.raises(sb3compat.WorkerTimeoutError):
        env.reset()
    env.close()
    assert all(process.has_ended() for process in processes)


def test_step_that_raises_is_reported_while_another_hangs(
    open_in: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchanges.WorkerExchange, "grace_seconds", 0.2)
    monkeypatch.setattr(workers, "_CLOSE_SECONDS", 0.2)
    env = open_in([lambda: Known(0, "hang"), lambda: Known(1, "raise")], 2)
    actions = np.zeros(2, int)
    env.step(actions)
    with no_hang(), pytest.raises(SeveralError, match=r"^number 1$"):
        env.step(actions)
    env._source._workers._timeout = 0.2
    with pytest.raises(sb3compat.WorkerTimeoutError, match="row 0 "):
        env.reset()


def test_error_of_a_function_arrives_and_ends_all_workers(open_in: Open, tmp_path: Path) -> None:
    def fails() -> gym.Env[Any, Any]:
        (tmp_path / "pid").write_text(str(os.getpid()))
        raise SeveralError(1, "make")

    with pytest.raises(SeveralError, match=r"^make 1$") as caught:
        open_in([*known(), fails])
    assert "in the worker of env_fns[5]:" in str(caught.value.__cause__)
    with suppress(ProcessLookupError):
        assert WorkerProcess(int((tmp_path / "pid").read_text())).has_ended()


def fails_while(flag: Path) -> Known:
    if flag.exists():
        raise SeveralError(4, "not now")
    return Known(4)


def test_rows_of_a_lost_worker_end_as_truncated(open_in: Open, tmp_path: Path) -> None:
    flag = tmp_path / "fail"
    env = open_in([*known()[:4], lambda: fails_while(flag)], on_worker_lost="restart")
    env.step(ACTIONS)
    held = env.step(ACTIONS)[0]
    last = held.copy()
    held[...] = 9  # what a user does with the observations has no effect
    processes_of(env)[1].kill()
    obs, _, dones, infos = env.step(ACTIONS)
    assert dones[3:].all()
    # What else such a step returns: `operations.py`.
    assert [row for row, info in enumerate(infos) if "sb3compat.worker_lost" in info] == [3, 4]
    for row in (3, 4):
        np.testing.assert_array_equal(infos[row]["terminal_observation"], last[row])
        np.testing.assert_array_equal(obs[row], Known(row).reset()[0])
    assert not env.step(ACTIONS)[2].any()
    processes_of(env)[1].kill()
    flag.touch()
    for use in (lambda: env.step(ACTIONS), env.reset, env.reset):
        with no_hang(), pytest.raises(SeveralError, match=r"^not now 4$"):
            use()
    with pytest.raises(sb3compat.WorkerError, match="row"):
        env.get_attr("row")
    flag.unlink()
    env.seed(3)
    np.testing.assert_array_equal(env.reset()[4], Known(4).reset(seed=7)[0])


class Changes(Known):
    """Its spaces depend on a file."""

    def __init__(self, flag: Path, changes: dict[str, Any]) -> None:
        super().__init__(0)
        vars(self).update(changes if flag.exists() else {})


@pytest.mark.parametrize(
    "changes",
    [
        {"observation_space": Box(-1, 1, (1,))},  # which fits into an array of more by repetition
        {"action_space": Discrete(2, start=1)},
    ],
)
def test_replaced_worker_with_other_spaces_is_refused_and_stays_lost(
    open_in: Open, tmp_path: Path, changes: dict[str, Any]
) -> None:
    flag = tmp_path / "change"
    env = open_in([lambda: Known(0), lambda: Changes(flag, changes)], on_worker_lost="restart")
    actions = np.zeros(2, int)
    flag.touch()
    processes_of(env)[1].kill()
    for use in (lambda: env.step(actions), env.reset):
        with no_hang(), pytest.raises(sb3compat.UnsupportedSpaceError, match=r"env_fns\[1\]"):
            use()
    flag.unlink()
    env.reset()
    assert not env.step(actions)[2].any()


def test_replaced_worker_with_other_rows_is_refused(tmp_path: Path) -> None:
    flag = tmp_path / "more"

    def several() -> Any:
        return SyncVectorEnv([lambda: Known(0)] * (2 + flag.exists()))

    env = opened([several], 1, on_worker_lost="restart")
    flag.touch()
    processes_of(env)[0].kill()
    with no_hang(), pytest.raises(sb3compat.UnsupportedSpaceError, match=r"rows=\[3\]"):
        env.step(ACTIONS[:2])


def test_method_of_a_lost_worker_is_an_error_until_the_next_step() -> None:
    env = opened(known(), on_worker_lost="restart")
    processes_of(env)[0].kill()
    with pytest.raises(sb3compat.WorkerError, match="rows 0 to 2 has died"):
        env.get_attr("row")
    assert env.get_attr("row", indices=[4]) == [4]
    assert env.step(ACTIONS)[2][:3].all()
    assert env.get_attr("row") == list(range(N))


def test_worker_that_is_lost_before_the_first_reset_takes_options_and_is_replaced_by_it() -> None:
    def several() -> Any:
        return SyncVectorEnv([lambda: Known(0)] * 2)

    env = forked([several] * 2, 2, on_worker_lost="restart")
    processes_of(env)[0].kill()
    env.set_options({"x": 3})  # checks them where rows share options
    env.reset()
    env.step(ACTIONS[:4])


def test_answer_that_cannot_be_unpickled_is_an_error_and_the_next_call_goes_on(
    open_in: Open,
) -> None:
    env = open_in([lambda i=i: WithOdd(i) for i in range(N)])
    with no_hang():
        with pytest.raises(ValueError, match="not a number"):
            env.env_method("odd", indices=1)
        assert env.get_attr("row") == list(range(N))
        with pytest.raises(ValueError, match="not a number"):
            env.step(np.arange(N))
        with pytest.raises(sb3compat.errors.CallOrderError, match="reset"):
            env.step(ACTIONS)
        env.reset()
        env.step(ACTIONS)
        env.step_async(np.arange(N))
        # As the next call does after an interrupt: a handler, too, may raise while they are read.
        with pytest.raises(ValueError, match="not a number"):
            env._source._workers.send({})
