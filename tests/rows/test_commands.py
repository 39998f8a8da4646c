"""The commands on a sub-environment, which do what its own methods do."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from sb3compat._rows.commands import run_command
from tests.envs import ScriptedEnv, script


def env_of(length: int = 2) -> Any:
    return ScriptedEnv(script(lengths=(length,)))


@pytest.mark.parametrize("same_step", [False, True])
def test_step_resets_at_the_end_of_an_episode_if_asked(same_step: bool) -> None:
    env, expected = env_of(), env_of()
    for each in (env, expected):
        run_command(each, "reset", {"seed": 3})
    for ending in (False, True):
        observation, reward, terminated, truncated, info, first = run_command(
            env, "step", 0, same_step
        )
        wanted = expected.step(0)
        np.testing.assert_equal(observation, wanted[0])
        assert (reward, terminated or truncated) == (wanted[1], ending)
        assert not (terminated and truncated)
        assert info.keys() == wanted[4].keys()
        assert (first is not None) == (same_step and ending)
    if first is not None:
        np.testing.assert_equal(first[0], expected.reset()[0])


def test_call_reads_what_is_no_method_and_set_reaches_the_owner() -> None:
    env = env_of()
    assert run_command(env, "call", "mu", (), {}) == env.mu
    run_command(env, "set", "mu", 2.0)
    assert run_command(env, "call", "get_wrapper_attr", ("mu",), {}) == 2.0


def test_module_is_light() -> None:
    code = "import sys, sb3compat._rows.commands; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
