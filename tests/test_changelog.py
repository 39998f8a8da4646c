"""The changelog is what its fragments say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_changelog_is_made_from_the_fragments() -> None:
    pytest.importorskip("towncrier", reason="puts the fragments together")
    script = ROOT / "docs" / "changelog.py"
    done = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_every_fragment_has_a_kind_that_is_known() -> None:
    """The fragments of another kind would be left out of the changelog."""
    assert kinds() <= {"added", "changed", "fixed", "removed"}


def test_nothing_is_changed_or_fixed_that_nobody_has_had() -> None:
    """Until there is a release, the fragment `+first-release.added.md` says what there is."""
    released = re.search(r"^## \[\d", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released or kinds() == {"added"}


def kinds() -> set[str]:
    fragments = [path.name for path in (ROOT / "changelog.d").iterdir()]
    return {name.split(".")[1] for name in fragments if name != "README.md"}
