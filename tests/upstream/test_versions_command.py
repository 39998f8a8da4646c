"""`sb3compat versions`, on what is installed and on altered installations."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sb3compat
from sb3compat._upstream.versions import PAIRS, is_supported, release
from sb3compat.cli import main

ROOT = Path(__file__).parents[2]


def versions(*first_on_path: Path, before: str = "") -> tuple[int, str]:
    """The exit code and output of the command in a Python of its own."""
    code = f"import sys\n{before}\nfrom sb3compat.cli import main\nrc = main(['versions'])\n"
    code += "print('loaded', *sys.modules)\nsys.exit(rc)"
    path = os.pathsep.join(map(str, (*first_on_path, ROOT)))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert not done.stderr
    return done.returncode, done.stdout


def test_installed_versions_are_supported_and_complete(capsys: Any) -> None:
    assert main(["versions"]) == 0
    out = capsys.readouterr().out
    assert f"sb3compat           {sb3compat.__version__}\n" in out
    assert f"Python              {sys.version.split()[0]}\n" in out
    assert "Gymnasium and Stable-Baselines3 are a supported pair." in out
    assert "Every private name that sb3compat relies on is there." in out


def test_needs_neither_hypothesis_nor_sb3_and_loads_no_library() -> None:
    hidden = "sys.modules['hypothesis'] = sys.modules['stable_baselines3'] = None"
    code, out = versions(before=hidden)
    assert code == 0
    assert "Not looked into, as they are not installed: stable_baselines3" in out
    _, out = versions()
    loaded = out.splitlines()[-1].split()
    for library in ("torch", "stable_baselines3", "jax", "ale_py", "envpool", "hypothesis"):
        assert library not in loaded
    assert not any(module.startswith("sb3compat.conformance") for module in loaded)


def test_missing_name_is_described_and_ends_with_1(tmp_path: Path) -> None:
    worker = tmp_path / "envpool" / "python"
    worker.mkdir(parents=True)
    (tmp_path / "envpool" / "__init__.py").touch()
    (worker / "gymnasium_envpool.py").write_text("class GymnasiumEnvPoolMixin: ...")
    (worker / "envpool.py").write_text(
        "class EnvPoolMixin:\n    def recv(self, reset=False): ...\n"
    )
    code, out = versions(tmp_path)
    assert code == 1
    assert "Missing, of the private names that sb3compat relies on: 1." in out
    assert "method send(action)\n  expected in  envpool.python.envpool:EnvPoolMixin" in out
    assert "without it   results that come after an interrupt" in out
    assert "used in      sb3compat/_to_sb3/bases.py" in out
    assert "Every private name" not in out


def test_unsupported_pair_ends_with_3(tmp_path: Path) -> None:
    info = tmp_path / "stable_baselines3-1.8.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stable-baselines3\nVersion: 1.8.0")
    code, out = versions(tmp_path)
    assert code == 3
    assert "are not a supported pair. Supported: Gymnasium 1.1 with 2.6" in out
    assert "Gymnasium 1.4 without it" in out


@pytest.mark.parametrize(("sb3", "gymnasium"), PAIRS)
def test_supported_pairs(sb3: str | None, gymnasium: str) -> None:
    assert is_supported(sb3 and f"{sb3}.7", f"{gymnasium}.0")
    assert is_supported(sb3, f"{gymnasium}.0a1")
    assert not is_supported("2.5.0", gymnasium)
    assert not is_supported(sb3, "1.0.0")


def test_release_of_a_version() -> None:
    assert release("1.10.0rc1") == (1, 10)
    assert release("2.13") == (2, 13)
