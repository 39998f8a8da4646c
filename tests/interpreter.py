"""Scripts that run in an interpreter of their own, where nothing is imported yet."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import sb3compat

# The package that this process tests, wherever it was imported from.
ROOT = Path(sb3compat.__file__).parents[1]
REPOSITORY = Path(__file__).parents[1]
HEAVY = ["stable_baselines3", "torch", "jax", "ray", "hypothesis", "pytest", "envpool", "ale_py"]

HAS_SB3 = find_spec("stable_baselines3") is not None
needs_sb3 = pytest.mark.skipif(not HAS_SB3, reason="needs stable-baselines3")


def run(
    *arguments: Any, cwd: Path = REPOSITORY, path: Sequence[Any] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments; it finds modules in the folders of `path`, and the tests."""
    folders = os.pathsep.join(map(str, (*path, REPOSITORY)))
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": folders, **environment},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def python(tmp_path: Path, script: str) -> str:
    """Run a script in a fresh interpreter, and return what it printed."""
    path = tmp_path / "script.py"
    path.write_text(script)
    done = run(path, cwd=tmp_path, path=[ROOT])
    assert done.returncode == 0, done.stderr
    return done.stdout


LOADED = f"""
import sys

def loaded():
    return [name for name in {HEAVY} if name in sys.modules]
"""


def hidden(module: str) -> str:
    """Code after which a module cannot be imported."""
    return f"""
import sys
from importlib.abc import MetaPathFinder

class NotInstalled(MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if fullname == {module!r}:
            raise ModuleNotFoundError(f"No module named {{fullname!r}}", name=fullname)

sys.meta_path.insert(0, NotInstalled())
"""
