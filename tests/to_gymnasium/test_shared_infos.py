"""Infos that rows share: arrays arrive as SB3 hands them out, and a shared dict is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sb3compat
from tests.envs import MakeEnv, ScriptedEnv, script

vec_envs: Any = pytest.importorskip("stable_baselines3.common.vec_env")

ACTIONS = np.array([0, 1])


def test_arrays_that_rows_share_arrive_as_sb3_itself_hands_them_out() -> None:
    stamp = np.zeros(1, int)

    class Sharing(ScriptedEnv):
        def step(self, action: Any) -> Any:
            stamp[0] = self.row
            return *super().step(action)[:4], {"stamp": stamp, "row": self.row}

    def made() -> Any:
        chosen = script(lengths=(2,))
        rows = [lambda row=row: Sharing(chosen, row) for row in range(3)]
        return vec_envs.VecMonitor(vec_envs.DummyVecEnv(rows))

    ours, theirs = sb3compat.to_gymnasium(made()), made()
    ours.reset()
    theirs.reset()
    for _ in range(2):
        infos, expected = ours.step([0] * 3)[-1], theirs.step([0] * 3)[-1]
        infos = infos.get("final_info", infos)
        assert infos["stamp"].tolist() == [info["stamp"].tolist() for info in expected]
        assert infos["row"].tolist() == [0, 1, 2]


def test_info_dict_that_rows_share_is_refused_over_a_wrapped_dummy_vec_env() -> None:
    chosen = script(lengths=(2,), shared=True)
    made = [MakeEnv(chosen, row) for row in range(2)]
    envs = sb3compat.to_gymnasium(vec_envs.VecCheckNan(vec_envs.DummyVecEnv(made)))
    envs.reset()
    with pytest.raises(sb3compat.ConversionError, match="an info dict of its own"):
        envs.step(ACTIONS)


def test_info_dict_that_rows_share_is_refused_below_a_wrapper_that_copies_infos() -> None:
    chosen = script(lengths=(1,), shared=True, endings=("terminated", "truncated"))
    made = [MakeEnv(chosen, row) for row in range(2)]
    # It copies those of rows that end, which here are all of them.
    envs = sb3compat.to_gymnasium(vec_envs.VecMonitor(vec_envs.DummyVecEnv(made)))
    envs.reset()
    with pytest.raises(sb3compat.ConversionError, match="an info dict of its own"):
        envs.step(ACTIONS)


def test_infos_that_a_wrapper_shares_over_a_dummy_vec_env_are_accepted() -> None:
    class NoInfos(vec_envs.VecEnvWrapper):
        def reset(self) -> Any:
            return self.venv.reset()

        def step_wait(self) -> Any:
            return *self.venv.step_wait()[:3], [{}] * 2

    envs = sb3compat.to_gymnasium(NoInfos(vec_envs.DummyVecEnv([MakeEnv(script(), 0)] * 2)))
    envs.reset()
    assert envs.step(ACTIONS)[-1] == {}
