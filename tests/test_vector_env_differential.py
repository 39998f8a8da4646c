"""The yardstick of the way back: what `SyncVectorEnv` yields, value for value, in every mode."""

from __future__ import annotations

import pytest
from gymnasium.vector import AutoresetMode
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.envs import script
from tests.lockstep_back import back_programs, dummy, lockstep, monitored, subproc
from tests.strategies import scripts

pytest.importorskip("stable_baselines3", reason="the sources are SB3's")

MODES = list(AutoresetMode)
mode_of = pytest.mark.parametrize("mode", MODES, ids=[mode.name for mode in MODES])


@mode_of
@given(data=st.data(), n=st.integers(1, 4))
@settings(max_examples=200)
def test_dummy(mode: AutoresetMode, data: st.DataObject, n: int) -> None:
    chosen = data.draw(scripts(("none", "plain")))
    lockstep(chosen, n, mode, dummy, data.draw(back_programs(n)))


@mode_of
@given(data=st.data(), n=st.integers(1, 3))
@settings(max_examples=15)
def test_subproc(mode: AutoresetMode, data: st.DataObject, n: int) -> None:
    chosen = data.draw(scripts(("none", "plain")))
    lockstep(chosen, n, mode, subproc, data.draw(back_programs(n)))


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
@given(data=st.data(), n=st.integers(1, 4))
@settings(max_examples=200)
def test_monitored(mode: AutoresetMode, data: st.DataObject, n: int) -> None:
    chosen = data.draw(scripts(("none", "plain")))
    lockstep(chosen, n, mode, monitored, data.draw(back_programs(n)))


@mode_of
@pytest.mark.parametrize("build", [dummy, subproc])
def test_all_rows_end_at_once(mode: AutoresetMode, build: object) -> None:
    chosen = script(lengths=(1,), endings=("truncated", "terminated", "both"), infos="plain")
    program = [("reset", (3, {"x": 1})), *[("step", number) for number in range(6)]]
    lockstep(chosen, 3, mode, build, program)
