"""The section of the changelog that is made from fragments."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "docs" / "changelog.py"


def load() -> Any:
    spec = importlib.util.spec_from_file_location("changelog", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_changelog_is_made_from_the_fragments() -> None:
    pytest.importorskip("towncrier", reason="puts the fragments together")
    done = subprocess.run(
        [sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_every_fragment_has_a_kind_and_a_text() -> None:
    fragments = [path for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md"]
    for path in fragments:
        assert "".join(path.suffixes[-2:-1]) in {
            ".added",
            ".changed",
            ".fixed",
            ".removed",
        }, path.name
        text = path.read_text(encoding="utf-8")
        assert text.strip(), path.name
        assert not text.startswith("- "), path.name


def test_release_takes_the_place_of_the_unreleased_section() -> None:
    changelog = load()
    old = f"# Changelog\n\n{changelog.MARK}\n## [Unreleased]\n\n### Added\n\n- One.\n"
    assert changelog.with_section(old, "## [Unreleased]", "### Added\n\n- One.\n") == old
    released = changelog.with_section(old, "## [0.1.0] - 2027-01-01", "### Added\n\n- One.\n")
    assert released.index("## [Unreleased]") < released.index("## [0.1.0] - 2027-01-01")
    assert released.count("- One.") == 1
    later = changelog.with_section(released, "## [Unreleased]", "### Fixed\n\n- Two.\n")
    assert later.count("## [Unreleased]") == later.count("## [0.1.0]") == 1
    assert later.index("- Two.") < later.index("- One.")
