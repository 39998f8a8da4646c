"""The kit where Gymnasium has no autoreset modes yet, as before 1.1."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.interpreter import run

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
def python(tmp_path: Path) -> Any:
    """Runs Python; each process, the one that runs the checks too, has an old Gymnasium."""
    (tmp_path / "sitecustomize.py").write_text(OLD)
    (tmp_path / "rows.py").write_text(ROWS)
    return partial(run, path=[tmp_path])


def test_a_vec_env_is_checked(python: Any) -> None:
    check = ("-m", "sb3compat", "check", "--only=dones_*", "--only=terminal_observation_iff_done")
    done = python(*check, "tests.conformance.tiny:FloatDones")
    assert (done.returncode, done.stderr) == (1, ""), done.stdout
    assert "failed: dones_bool_array" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("1 failed, 2 passed in ")


def test_a_vector_env_is_refused(python: Any) -> None:
    done = python("-m", "sb3compat", "check", "rows:Rows", "--no-isolate")
    assert done.returncode == 2
    assert "Expected Gymnasium 1.1 or newer to check a VectorEnv" in done.stderr


def test_the_adapters_say_what_they_need(python: Any) -> None:
    done = python("-c", "import sb3compat; sb3compat.WorkerError; sb3compat.to_sb3")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: Expected Gymnasium 1.1 or newer for sb3compat.to_sb3, got")
    done = python("-m", "sb3compat", "trace", "rows:Rows")
    assert (done.returncode, done.stdout) == (2, "")
    assert "newer for `sb3compat trace`, got" in done.stderr
