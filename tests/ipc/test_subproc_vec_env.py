"""Faults in the workers of a SubprocVecEnv: the error arrives, and the other workers survive."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
from gymnasium.vector import AutoresetMode

import sb3compat
from tests.envs import ScriptedEnv, script
from tests.lockstep_back import subproc

pytest.importorskip("stable_baselines3")


class Failing(ScriptedEnv):
    """An environment that fails in the way that the action says."""

    def step(self, action: Any) -> Any:
        if action == 1:
            raise KeyError("several", "arguments")
        if action == 2:
            raise asyncio.CancelledError("stop")
        return super().step(action)

    def unsendable(self) -> Any:
        return lambda: None


def failing(n: int = 2, mode: Any = "SameStep") -> Any:
    chosen = script(lengths=(9,), infos="none")
    made = subproc([lambda row=row: Failing(chosen, row) for row in range(n)])
    return sb3compat.to_gymnasium(made, autoreset_mode=mode)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_exceptions_keep_their_type_and_the_workers_live(mode: AutoresetMode) -> None:
    envs = failing(3, mode)
    envs.reset()
    for action, kind, message in (
        (1, KeyError, "several"),
        (2, asyncio.CancelledError, r"^stop$"),
    ):
        with pytest.raises(kind, match=message) as caught:
            envs.step([0, action, 1])  # of several, the exception of the first row
        assert "in step" in str(caught.value.__cause__)
        assert "in the worker of row 1" in str(caught.value.__cause__)
        with pytest.raises(RuntimeError, match=r"Expected reset\(\)"):
            envs.step([0, 0, 0])
        envs.reset()
        assert envs.step([0, 0, 0])[-1]["shared"].tolist() == [1, 1, 1]
    with pytest.raises(KeyError, match="several"):
        envs.call("fail")
    with pytest.raises(AttributeError, match="pickle"):
        envs.call("unsendable")
    assert envs.step([0, 0, 0])[-1]["shared"].tolist() == [2, 2, 2]


def test_vec_env_closed_by_the_user_refuses_calls() -> None:
    envs = failing()
    envs.vec_env.close()
    with pytest.raises(sb3compat.ClosedError, match=r"was closed\. Make a new one"):
        envs.reset()
    envs.close()


def test_what_cannot_be_sent_reaches_no_worker() -> None:
    envs = failing()
    envs.reset()
    uses: list[Callable[[], Any]] = [
        lambda: envs.step([0, threading.Lock()]),
        lambda: envs.reset(options={"lock": threading.Lock()}),
    ]
    for use in uses:
        with pytest.raises((AttributeError, TypeError), match="cannot pickle"):
            use()
        assert envs.vec_env.get_attr("_time") == [0, 0]
    assert envs.reset(seed=4)[1]["resets"].tolist() == [2, 2]


class Blocking(ScriptedEnv):
    """Steps only after the other row's reset: it waits for the file that the reset makes."""

    def __init__(self, row: int, path: str) -> None:
        super().__init__(script(lengths=(1,) if row == 0 else (9,), infos="none"), row)
        self.path = path

    def reset(self, **kwargs: Any) -> Any:
        if self.row == 0 and self._resets == 1:
            open(self.path, "w").close()
        return super().reset(**kwargs)

    def step(self, action: Any) -> Any:
        while self.row == 1 and self._time == 1 and not os.path.exists(self.path):
            pass
        return super().step(action)


def test_rows_step_and_reset_at_the_same_time(tmp_path: Any) -> None:
    path = str(tmp_path / "reset")
    # Row 1 comes first, so that it would wait for ever if rows were asked one after the other.
    made = [lambda row=row: Blocking(row, path) for row in (1, 0)]
    envs = sb3compat.to_gymnasium(subproc(made), autoreset_mode="NextStep")
    envs.reset()
    assert envs.step([0, 0])[2].tolist() == [False, True]
    _, rewards, _, _, infos = envs.step([0, 0])
    assert rewards[1] == 0
    assert infos["_resets"].tolist() == [False, True]


def test_environment_of_which_a_worker_owes_an_answer_can_be_closed() -> None:
    """A row that is named twice, for instance, which SB3 takes and the watch refuses."""
    envs: Any = failing(2)
    envs.reset()
    vec_env = envs.vec_env
    with pytest.raises(sb3compat.WorkerError, match="no outstanding answer"):
        vec_env.env_method("reset", indices=[0, 0])
    vec_env.close()
    assert not any(process.is_alive() for process in vec_env.processes)
