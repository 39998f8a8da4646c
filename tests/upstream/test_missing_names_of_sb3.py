"""Private names of Stable-Baselines3 that are missing raise an error that names them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from gymnasium.vector import SyncVectorEnv

import sb3compat
from sb3compat.errors import UpstreamError
from tests.upstream.test_missing_names import lacks, make

ROOT = Path(__file__).parents[2]


@pytest.fixture
def sb3() -> Any:
    module = pytest.importorskip("stable_baselines3")
    return module.common.vec_env


SB3 = r"stable-baselines3 2\."


@pytest.mark.parametrize("name", ["_seeds", "_options"])
def test_seeds_and_options_that_wait(name: str, sb3: Any) -> None:
    adapted = sb3compat.to_sb3(SyncVectorEnv([make]))
    delattr(adapted, name)
    with pytest.raises(UpstreamError, match=rf"'{name}'"):
        adapted.reset()
    vec_env = sb3.DummyVecEnv([make])
    envs = sb3compat.to_gymnasium(vec_env)
    delattr(vec_env, name)
    with lacks(name, SB3):
        envs.reset()


@pytest.mark.parametrize("name", ["_reset_seeds", "_reset_options"])
def test_seeds_and_options_are_used_once(name: str, sb3: Any) -> None:
    class Lacks(sb3.DummyVecEnv):  # type: ignore[misc]
        gone = False

        def __getattribute__(self, asked: str) -> Any:
            if asked == name and super().__getattribute__("gone"):
                raise AttributeError(asked)
            return super().__getattribute__(asked)

        def reset(self) -> Any:
            self.gone = True
            return self._obs_from_buf()

    envs = sb3compat.to_gymnasium(Lacks([make]))
    with lacks(name, SB3):
        envs.reset(seed=1)


@pytest.fixture
def subproc(sb3: Any) -> Any:
    vec_env = sb3.SubprocVecEnv([make] * 2, start_method="fork")
    held = {name: getattr(vec_env, name) for name in ("remotes", "processes")}
    yield vec_env
    vars(vec_env).update(held)
    for process in vec_env.processes:
        process.kill()
    vec_env.waiting, vec_env.closed = False, True


@pytest.mark.parametrize("name", ["remotes", "processes", "waiting", "closed"])
def test_workers_of_a_subproc_vec_env(name: str, subproc: Any) -> None:
    delattr(subproc, name)
    with lacks(name, SB3):
        sb3compat.to_gymnasium(subproc)


@pytest.mark.parametrize("name", ["remotes", "processes"])
def test_death_of_workers_under_a_wrapper(name: str, subproc: Any, sb3: Any) -> None:
    wrapped = sb3.VecMonitor(subproc)
    delattr(subproc, name)
    with lacks(name, SB3):
        sb3compat.to_gymnasium(wrapped)


def test_pending_step_of_workers_that_have_died(subproc: Any, sb3: Any) -> None:
    envs = sb3compat.to_gymnasium(sb3.VecMonitor(subproc))
    envs.reset()
    subproc.processes[1].kill()
    subproc.processes[1].join()
    type(subproc).step_async(subproc, [0, 0])
    del subproc.waiting
    from sb3compat._ipc.subproc_vec_env import forget_step

    with lacks("waiting", SB3):
        forget_step(subproc)


def test_override_of_how_rows_are_reached(sb3: Any) -> None:
    from sb3compat._upstream.vec_env import reaches_rows_as

    class Other(sb3.DummyVecEnv):  # type: ignore[misc]
        def _get_target_envs(self, indices: Any) -> Any:
            return self.envs

    plain, other = sb3.DummyVecEnv([make]), Other([make])
    assert reaches_rows_as(plain, "DummyVecEnv")
    assert not reaches_rows_as(other, "DummyVecEnv")
    assert not reaches_rows_as(plain, "SubprocVecEnv")


MOVED = """
import sys
import sb3compat
from sb3compat.errors import UpstreamError
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor
from tests.upstream.test_missing_names import make

vec_env = VecMonitor(DummyVecEnv([make]))
sys.modules["stable_baselines3.common.elsewhere"] = sys.modules.pop(
    "stable_baselines3.common.vec_env"
)
try:
    sb3compat.to_gymnasium(vec_env)
except UpstreamError as error:
    print(error)
"""


@pytest.mark.parametrize("flags", [[], ["-O"]], ids=["", "optimised"])
def test_module_that_has_moved(flags: list[str]) -> None:
    pytest.importorskip("stable_baselines3")
    done = subprocess.run(
        [sys.executable, *flags, "-c", MOVED],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert "Expected 'common.vec_env' of stable_baselines3" in done.stdout, done.stderr


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
def test_user_class_that_skips_the_init_of_sb3_is_not_accused(mode: str, sb3: Any) -> None:
    class Skips(sb3.DummyVecEnv):  # type: ignore[misc]
        def __init__(self) -> None:
            whole = sb3.DummyVecEnv([make])
            kept = {k: v for k, v in vars(whole).items() if k not in ("_seeds", "_options")}
            vars(self).update(kept)

        def reset(self) -> Any:
            self.envs[0].reset()
            return self._obs_from_buf()

    envs = sb3compat.to_gymnasium(Skips(), autoreset_mode=mode)
    envs.reset()
    envs.step([0])
