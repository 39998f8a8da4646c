"""How much a profile runs, that a wrong name of one is no success, and which tests are costly."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import settings

from tests import profiles
from tests.costly import CASES

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("name", "examples", "spread", "some"),
    [
        ("", {500: 50, 60: 10, 3: 3}, "adg", "ab"),
        ("ci", {500: 100, 60: 12, 3: 3}, "adg", "ab"),
        ("nightly", {500: 500, 60: 60, 3: 3}, "abcdefg", "abcdefg"),
    ],
)
def test_profile_runs_its_share(
    name: str,
    examples: dict[int, int],
    spread: str,
    some: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(profiles.VARIABLE, name)
    assert {number: profiles.examples(number) for number in examples} == examples
    assert "".join(profiles.spread("abcdefg", 3)) == spread
    assert "".join(profiles.some("abcdefg", 2)) == some


def test_another_profile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(profiles.VARIABLE, "nightl")
    expected = "Expected one of dev, ci, nightly, got SB3COMPAT_PROFILE='nightl'."
    with pytest.raises(ValueError, match=expected):
        profiles.profile()


def test_hypothesis_runs_with_the_profile_of_this_run() -> None:
    assert settings.default is not None
    assert settings.default.max_examples == profiles.examples(500)


@pytest.mark.parametrize("path", CASES)
def test_costly_tests_exist_and_have_cases(path: str) -> None:
    tree = ast.parse((ROOT / path).read_text())
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for name, few in CASES[path].items():
        assert functions[name].args.args or not few
