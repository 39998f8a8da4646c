"""The kit where Gymnasium has no autoreset modes yet, as before 1.1."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OLD = "import gymnasium.vector\ndel gymnasium.vector.AutoresetMode\n"
ROWS = """
from tests.conformance.tiny import TinyVecEnv

class Rows(TinyVecEnv):
    def __init__(self):
        super().__init__()
        self.single_observation_space = self.observation_space
        self.single_action_space = self.action_space
"""


@pytest.fixture
def old(tmp_path: Path) -> dict[str, str]:
    """An environment in which each Python, the one that runs the checks too, has an old one."""
    (tmp_path / "sitecustomize.py").write_text(OLD)
    (tmp_path / "rows.py").write_text(ROWS)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}


def python(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )


def test_a_vec_env_is_checked(old: dict[str, str]) -> None:
    check = ("-m", "sb3compat", "check", "--only=dones_*", "--only=terminal_observation_iff_done")
    done = python(old, *check, "tests.conformance.tiny:TinyVecEnv")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.splitlines()[-1].startswith("3 passed in ")
    done = python(old, *check, "tests.conformance.tiny:FloatDones")
    assert done.returncode == 1
    assert "failed: dones_bool_array" in done.stdout


def test_a_vector_env_is_refused(old: dict[str, str]) -> None:
    done = python(old, "-m", "sb3compat", "check", "rows:Rows", "--no-isolate")
    assert done.returncode == 2
    assert "Expected Gymnasium 1.1 or newer to check a VectorEnv" in done.stderr


def test_the_adapters_say_what_they_need(old: dict[str, str]) -> None:
    done = python(old, "-c", "import sb3compat; sb3compat.WorkerError; sb3compat.to_sb3")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: Expected Gymnasium 1.1 or newer for sb3compat.to_sb3, got")
    for command in (["versions"], ["trace", "rows:Rows"]):
        done = python(old, "-m", "sb3compat", *command)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"newer for `sb3compat {command[0]}`, got" in done.stderr
