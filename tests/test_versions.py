"""The supported versions: one table, and the pages that repeat it.

And `sb3compat versions`, on what is installed and on altered installations.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import sb3compat
from sb3compat._upstream.table import NAMES
from sb3compat._versions import PAIRS, is_supported, missing_names
from sb3compat.cli import main as command
from tests.interpreter import run
from versions.pairs import environments

ROOT = Path(__file__).parents[1]
NUMBER = r"\d+\.\d+"


def numbers(text: str) -> list[str]:
    return re.findall(NUMBER, text)


# The table and the pages


def test_every_pair_is_tried_and_every_python() -> None:
    every = environments()
    assert {(each.sb3, each.gymnasium) for each in every} == set(PAIRS)
    classifiers = re.findall(r"Python :: (\d\.\d+)", (ROOT / "pyproject.toml").read_text())
    assert {each.python for each in every} == set(classifiers)
    assert len({each.name for each in every}) == len(every)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_pages_name_the_pairs(page: str) -> None:
    text = (ROOT / page).read_text()
    rows = re.findall(rf"^\| ({NUMBER}|none) \| ((?:{NUMBER}|, )+) \|$", text, re.MULTILINE)
    found = {(sb3, gymnasium) for sb3, several in rows for gymnasium in numbers(several)}
    assert found == {(sb3 or "none", gymnasium) for sb3, gymnasium in PAIRS}


# `sb3compat versions`


def printed(*first_on_path: Path, before: str = "") -> tuple[int, str]:
    """The exit code and output of the command in a Python of its own."""
    code = f"import sys\n{before}\nfrom sb3compat.cli import main\nrc = main(['versions'])\n"
    code += "print('loaded', *sys.modules)\nsys.exit(rc)"
    done = run("-c", code, path=first_on_path)
    assert not done.stderr
    return done.returncode, done.stdout


def test_installed_versions_are_supported_and_complete(capsys: pytest.CaptureFixture) -> None:
    assert command(["versions"]) == 0
    out = capsys.readouterr().out
    assert f"sb3compat           {sb3compat.__version__}\n" in out
    assert f"Python              {sys.version.split()[0]}\n" in out
    pair = r"\nGymnasium (and Stable-Baselines3 are a|without Stable-Baselines3 is) supported"
    assert re.search(pair, out)
    assert "Every private name that sb3compat relies on is there." in out


def test_command_does_without_sb3_and_loads_no_library() -> None:
    hidden = "sys.modules['stable_baselines3'] = None"
    code, out = printed(before=hidden)
    assert code == 0
    assert "Skipped (not installed): stable_baselines3" in out
    assert "Gymnasium without Stable-Baselines3 is supported.\nEverything works without" in out
    assert 'pip install "sb3compat[sb3]"' in out
    _, out = printed()
    loaded = out.splitlines()[-1].split()
    for library in ("torch", "stable_baselines3", "jax", "ale_py", "envpool"):
        assert library not in loaded
    assert not any(module.startswith("sb3compat.conformance") for module in loaded)


def test_missing_name_is_described_and_unsupported_pair_is_told(tmp_path: Path) -> None:
    info = tmp_path / "stable_baselines3-1.8.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stable-baselines3\nVersion: 1.8.0")
    code, out = printed(tmp_path)
    assert code == 3
    assert "are not a supported pair. Supported: Gymnasium 1.1 with 2.6" in out
    assert "Gymnasium 1.4 without it" in out
    folder = tmp_path / "envpool" / "python"
    folder.mkdir(parents=True)
    (tmp_path / "envpool" / "__init__.py").touch()
    (folder / "gymnasium_envpool.py").write_text("class GymnasiumEnvPoolMixins: ...\n")
    code, out = printed(tmp_path)
    assert code == 1
    assert "Missing, of the private names that sb3compat relies on: 1." in out
    name = "envpool.python.gymnasium_envpool.GymnasiumEnvPoolMixin"
    assert f"\n{name}\n  expected in  envpool" in out
    assert "  without it   known by its name only: NEXT_STEP mode would be refused\n" in out
    assert "Every private name" not in out


def test_old_gymnasium_is_told_what_works_with_it(tmp_path: Path) -> None:
    info = tmp_path / "gymnasium-0.29.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gymnasium\nVersion: 0.29.1")
    code, out = printed(tmp_path)
    assert code == 3
    assert "too old for the adapters" in out
    assert "Supported with it: `sb3compat check` of a VecEnv" in out
    assert "pip install 'gymnasium>=1.1'" in out


@pytest.mark.parametrize("field", ["owner", "name"])
def test_every_word_of_the_table_that_is_renamed_is_missing(field: str) -> None:
    renamed = [each._replace(since="", **{field: f"{getattr(each, field)}_gone"}) for each in NAMES]
    gone = {(each.module, each.name) for each in missing_names(renamed)}
    # What `sys` has is not written in Python.
    left = [each for each in renamed if (each.module, each.name) not in gone]
    assert {each.library for each in left} <= {"sys", "stable_baselines3", "ale_py", "envpool"}
    for each in left:
        if each.library != "sys":
            with pytest.raises(ModuleNotFoundError):
                __import__(each.library)
    (first,) = missing_names([renamed[0], renamed[0]._replace(since="99.0")])
    assert first == renamed[0]


@pytest.mark.parametrize(("sb3", "gymnasium"), PAIRS)
def test_supported_pairs(sb3: str | None, gymnasium: str) -> None:
    assert is_supported(sb3 and f"{sb3}.7", f"{gymnasium}.0")
    assert is_supported(sb3, f"{gymnasium}.0a1")
    assert not is_supported("2.5.0", gymnasium)
    assert not is_supported(sb3, "1.0.0")
