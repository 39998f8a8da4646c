"""`sb3compat replay`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sb3compat.conformance.output.json import load
from sb3compat.conformance.program.source import PLACEHOLDER
from tests.conformance.commands.shell import ONLY, TINY, refused, sb3compat


def test_a_broken_environment_fails_until_it_is_repaired(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = sb3compat("check", f"{TINY}:NoTerminalObservation", *ONLY, "--json", str(report))
    assert (done.returncode, done.stderr) == (1, "")
    assert "failed: terminal_observation_iff_done" in done.stdout
    assert "sb3compat explain terminal_observation_iff_done" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("1 failed in ")
    assert "\x1b" not in done.stdout
    # The reproduction runs as it is, wherever it is.
    script = tmp_path / "script.py"
    script.write_text(load(report.read_text()).results[0].reproduction)
    alone = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, check=False)
    assert b"AssertionError: list(infos[0])=[], but should be" in alone.stderr

    for file in (report, script):
        done = sb3compat("replay", str(file), cwd=tmp_path)
        assert (done.returncode, done.stderr) == (1, "")
        assert done.stdout.startswith("still failing: ")
        assert done.stdout.endswith("1 still failing\n")
    # Repaired, it passes.
    text = report.read_text().replace("NoTerminalObservation", "TinyVecEnv")
    report.write_text(text)
    done = sb3compat("replay", str(report))
    assert (done.returncode, done.stdout) == (
        0,
        "passing now: terminal_observation_iff_done\n1 passing now\n",
    )


def test_scripts_that_fail_otherwise_hang_or_lack_a_factory(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"{PLACEHOLDER}\nassert make_env().num_envs == 3, 'two'\n")
    done = sb3compat("replay", str(script))
    assert done.returncode == 2
    assert "does not know the factory. Name it: --target package.module:name" in done.stdout
    done = sb3compat("replay", str(script), "--target", f"{TINY}:TinyVecEnv")
    assert (done.returncode, "AssertionError: two" in done.stdout) == (1, True)
    script.write_text("raise ValueError('no')\n")
    done = sb3compat("replay", str(script))
    assert (done.returncode, done.stdout.startswith("failing otherwise")) == (1, True)
    script.write_text("import time\ntime.sleep(1000)\n")
    done = sb3compat("replay", str(script), "--max-seconds", "0.5")
    assert (done.returncode, "has not ended within" in done.stdout) == (1, True)


def test_a_target_that_cannot_be_imported_is_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.py"
    script.write_text("pass")
    (tmp_path / "fails_to_import.py").write_text("raise ValueError('no licence')")
    target = f"{tmp_path / 'fails_to_import.py'}:make_env"
    said = refused(capsys, "replay", str(script), "--target", target)
    assert said.startswith("Traceback (most recent call last):")
    assert said.endswith(
        f"ValueError: no licence\nsb3compat: {target} cannot be imported, see above.\n"
    )
    assert "fails_to_imprt" in refused(
        capsys, "replay", str(script), "--target", "fails_to_imprt:x"
    )
