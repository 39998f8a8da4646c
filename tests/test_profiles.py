"""How much a profile runs, that a wrong name of one is no success, and which tests are costly."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import profiles
from tests.costly import CASES, short

TESTS = Path(__file__).parent


@pytest.mark.parametrize(
    ("name", "examples", "spread"), [("", [50, 10, 3], "adg"), ("nightly", [80, 10, 3], "abcdefg")]
)
def test_profiles_run_their_shares(
    name: str, examples: list[int], spread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(profiles.VARIABLE, name)
    assert [profiles.examples(number) for number in (500, 60, 3)] == examples
    assert "".join(profiles.spread("abcdefg", 3)) == spread


def test_another_profile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(profiles.VARIABLE, "nightl")
    expected = "Expected one of dev, nightly, got SB3COMPAT_PROFILE='nightl'."
    with pytest.raises(ValueError, match=expected):
        profiles.profile()


def test_costly_tests_exist() -> None:
    existing = {
        short(f"{path.relative_to(TESTS.parent).as_posix()}::{function}")
        for path in TESTS.rglob("test_*.py")
        for function in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    assert CASES.keys() <= existing
