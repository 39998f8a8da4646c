"""The command line in a process of its own, as users start it, or in this one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sb3compat import cli
from tests.interpreter import REPOSITORY, run

TINY = "tests.conformance.tiny"
ONLY = ("--only", "reset_returns_obs_only")


def sb3compat(*arguments: str, cwd: Path = REPOSITORY) -> subprocess.CompletedProcess[str]:
    return run("-m", "sb3compat", *arguments, cwd=cwd)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What is said of wrong use, in this process."""
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("sb3compat: ") == 1
    return err
