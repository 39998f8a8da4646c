"""`sb3compat replay`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sb3compat import cli
from sb3compat.conformance.output.json import load
from sb3compat.conformance.program.source import PLACEHOLDER
from tests.conformance.commands.shell import ONLY, TINY
from tests.interpreter import REPOSITORY

Said = Callable[..., str]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> Said:
    """What a command prints in another folder, after its exit code was compared."""
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    monkeypatch.chdir(tmp_path)

    def said(code: int, *arguments: str) -> str:
        assert cli.main(arguments) == code
        out, err = capsys.readouterr()
        assert err == ""
        return str(out)

    return said


def test_a_broken_environment_fails_until_it_is_repaired(said: Said, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    shown = said(1, "check", f"{TINY}:NoReset", *ONLY, "--json", "report.json")
    assert "failed: reset_returns_obs_only" in shown
    assert "sb3compat explain reset_returns_obs_only" in shown
    assert shown.splitlines()[-1].startswith("1 failed in ")
    assert "\x1b" not in shown
    # The reproduction runs as it is, wherever it is.
    script = tmp_path / "script.py"
    script.write_text(load(report.read_text()).results[0].reproduction)
    alone = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, check=False)
    assert b"AssertionError: type(result)=<class 'tuple'>, but should be" in alone.stderr

    for file in (report, script):
        shown = said(1, "replay", file.name)
        assert shown.startswith("still failing: ")
        assert shown.endswith("1 still failing\n")
    # Repaired, it passes.
    report.write_text(report.read_text().replace("NoReset", "TinyVecEnv"))
    passing = "passing now: reset_returns_obs_only\n1 passing now\n"
    assert said(0, "replay", "report.json") == passing


def test_scripts_that_fail_otherwise_hang_or_lack_a_factory(said: Said, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"{PLACEHOLDER}\nassert make_env().num_envs == 3, 'two'\n")
    wanted = "does not know the factory. Name it: --target package.module:name"
    assert wanted in said(2, "replay", "script.py")
    target = f"{TINY}:TinyVecEnv"
    assert "AssertionError: two" in said(1, "replay", "script.py", "--target", target)
    script.write_text("raise ValueError('no')\n")
    assert said(1, "replay", "script.py").startswith("failing otherwise")
    script.write_text("import time\ntime.sleep(1000)\n")
    assert "has not ended within" in said(1, "replay", "script.py", "--max-seconds", "0.5")
