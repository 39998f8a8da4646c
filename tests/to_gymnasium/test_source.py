"""Which source drives which `VecEnv`, and what is read from it and its sub-environments."""

from __future__ import annotations

import gc
from copy import deepcopy
from typing import Any

import pytest
from gymnasium.vector import AutoresetMode

import sb3compat
from tests.envs import ScriptedEnv, fns
from tests.handwritten import CountingVecEnv
from tests.lockstep_back import NAMES, SOURCES

pytest.importorskip("stable_baselines3")

SAME_STEP, DISABLED = AutoresetMode.SAME_STEP, AutoresetMode.DISABLED


@pytest.mark.parametrize("build", SOURCES, ids=NAMES)
def test_metadata_are_not_shared(build: Any) -> None:
    first = sb3compat.to_gymnasium(build(fns()))
    second = sb3compat.to_gymnasium(build(fns()), autoreset_mode=DISABLED)
    before = deepcopy(ScriptedEnv.metadata)  # older Gymnasium writes a mode into it
    assert first.metadata == {**before, "autoreset_mode": SAME_STEP}
    assert second.metadata == {**before, "autoreset_mode": DISABLED}
    first.metadata["render_modes"].append("human")
    assert ScriptedEnv.metadata == before
    assert before["render_fps"] == 7
    first.close()
    second.close()


def test_close_closes_the_vec_env_and_garbage_collection_does_not() -> None:
    vec_env = CountingVecEnv()
    ours: Any = sb3compat.to_gymnasium(vec_env)
    del ours
    gc.collect()
    assert not vec_env.closed
    sb3compat.to_gymnasium(vec_env).close()
    assert vec_env.closed
