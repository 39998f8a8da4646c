from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests import profiles

ROOT = Path(__file__).parents[1]


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.delenv(profiles.VARIABLE, raising=False)
    return monkeypatch


def test_dev_is_the_default(choose: pytest.MonkeyPatch) -> None:
    assert profiles.profile() == "dev"
    choose.setenv(profiles.VARIABLE, "")
    assert profiles.profile() == "dev"


def test_the_profile_is_named_by_the_environment(choose: pytest.MonkeyPatch) -> None:
    for name in ("dev", "ci", "nightly"):
        choose.setenv(profiles.VARIABLE, name)
        assert profiles.profile() == name
        assert profiles.nightly() == (name == "nightly")


def test_another_profile_is_refused(choose: pytest.MonkeyPatch) -> None:
    choose.setenv(profiles.VARIABLE, "nightl")
    expected = "Expected one of dev, ci, nightly, got SB3COMPAT_PROFILE='nightl'."
    with pytest.raises(ValueError, match=expected):
        profiles.profile()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dev", {500: 50, 150: 15, 60: 10, 12: 10, 3: 3}),
        ("ci", {500: 100, 150: 30, 60: 12, 12: 10, 3: 3}),
        ("nightly", {500: 500, 150: 150, 60: 60, 12: 12, 3: 3}),
    ],
)
def test_each_profile_runs_its_share_of_the_examples(
    choose: pytest.MonkeyPatch, name: str, expected: dict[int, int]
) -> None:
    choose.setenv(profiles.VARIABLE, name)
    assert {number: profiles.examples(number) for number in expected} == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("ci", ["adg", "a", "", "abc"]), ("nightly", ["abcdefg", "a", "", "abc"])],
)
def test_spread_takes_the_first_the_last_and_some_between(
    choose: pytest.MonkeyPatch, name: str, expected: list[str]
) -> None:
    choose.setenv(profiles.VARIABLE, name)
    assert [
        "".join(profiles.spread(values, 3)) for values in ("abcdefg", "a", "", "abc")
    ] == expected
    assert "".join(profiles.spread("abc", 1)) == ("abc" if name == "nightly" else "a")


@pytest.mark.parametrize(("name", "expected"), [("ci", "ab"), ("nightly", "abc")])
def test_some_takes_all_values_only_nightly(
    choose: pytest.MonkeyPatch, name: str, expected: str
) -> None:
    choose.setenv(profiles.VARIABLE, name)
    assert profiles.some(["a", "b", "c"], 2) == list(expected)


def test_hypothesis_runs_with_the_profile_of_this_run() -> None:
    assert settings.default is not None
    assert settings.default.max_examples == profiles.examples(500)
    assert settings.default.deadline is None


def test_wrong_profile_stops_the_run() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider", __file__],
        cwd=ROOT,
        env={**os.environ, profiles.VARIABLE: "all"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "got SB3COMPAT_PROFILE='all'" in done.stderr
