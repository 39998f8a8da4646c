"""The yardstick of `to_gymnasium`: what `SyncVectorEnv` yields, value for value, in every mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.vector import AutoresetMode
from hypothesis import given, settings
from hypothesis import strategies as st

import sb3compat
from sb3compat._convert.split_infos import split_infos
from tests.convert.info_batches import equal
from tests.envs import MakeEnv, Script
from tests.lockstep_back import actions_of, back_programs, dummy, lockstep, monitored, subproc
from tests.profiles import examples
from tests.strategies import scripts

pytest.importorskip("stable_baselines3", reason="the sources are SB3's")

ROW_BY_ROW = [(dummy, mode) for mode in AutoresetMode]
AS_A_WHOLE = [(monitored, AutoresetMode.SAME_STEP), (monitored, AutoresetMode.DISABLED)]


def equal_sync_vector_env(build: Any, mode: AutoresetMode, data: st.DataObject, n: int) -> None:
    chosen = data.draw(scripts(("none", "plain"), shared=True))
    lockstep(chosen, n, mode, build, data.draw(back_programs(n)))


@pytest.mark.parametrize(("build", "mode"), ROW_BY_ROW + AS_A_WHOLE)
@given(data=st.data(), n=st.integers(1, 4))
@settings(max_examples=examples(200))
def test_vec_env_in_this_process_equals_sync_vector_env(
    build: Any, mode: AutoresetMode, data: st.DataObject, n: int
) -> None:
    equal_sync_vector_env(build, mode, data, n)


@pytest.mark.parametrize("mode", AutoresetMode)
@given(data=st.data(), n=st.integers(1, 3))
@settings(max_examples=examples(15))
def test_subproc_vec_env_equals_sync_vector_env(
    mode: AutoresetMode, data: st.DataObject, n: int
) -> None:
    equal_sync_vector_env(subproc, mode, data, n)


class Tame(gym.Wrapper[Any, Any, Any, Any]):
    """Gives infos without the keys that collide with masks."""

    def step(self, action: Any) -> Any:
        *rest, info = self.env.step(action)
        return *rest, {key: info[key] for key in info if key not in ("_mixed", "_hidden")}


def tame(chosen: Script, n: int) -> list[Callable[[], Any]]:
    return [lambda i=i: Tame(MakeEnv(chosen, i)()) for i in range(n)]


@given(data=st.data(), n=st.integers(1, 4), steps=st.lists(st.integers(0, 99), max_size=9))
@settings(max_examples=examples(100))
def test_infos_that_gymnasium_would_change_keep_their_values(
    data: st.DataObject, n: int, steps: list[int]
) -> None:
    """Infos with values of all types are, row by row, those of `DummyVecEnv`."""
    from stable_baselines3.common.vec_env import DummyVecEnv

    chosen = data.draw(scripts(("wild",), reuse=False))
    ours = sb3compat.to_gymnasium(DummyVecEnv(tame(chosen, n)))
    reference = DummyVecEnv(tame(chosen, n))
    ours.reset()
    reference.reset()
    for number in steps:
        actions = actions_of(chosen.action_space, n, 2 * number + 1)
        _, _, terminations, truncations, infos = ours.step(actions)
        _, _, dones, expected = reference.step(actions)
        rows = split_infos(infos, n)
        for i in range(n):
            expected[i].pop("TimeLimit.truncated")
            last = expected[i].pop("terminal_observation", None)
            assert equal(rows[i].pop("final_obs", None), last)
            assert dones[i] == (terminations[i] or truncations[i])
            # A sub-environment's own flag, over which SB3 has written.
            rows[i].get("final_info", rows[i]).pop("TimeLimit.truncated", None)
            if dones[i]:
                final = rows[i].pop("final_info")
                assert equal(final, expected[i]), (final, expected[i])
                expected[i] = reference.reset_infos[i]
            assert equal(rows[i], expected[i]), (rows[i], expected[i])
