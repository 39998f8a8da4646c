"""What a change leaves out of the costly tests exists, and is run nightly."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.costly import CASES, left_out
from tests.profiles import VARIABLE

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("path", CASES)
def test_names_are_those_of_tests_that_have_cases(path: str) -> None:
    tree = ast.parse((ROOT / path).read_text())
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for name, few in CASES[path].items():
        assert functions[name].args.args or not few


@pytest.mark.parametrize(("profile", "share"), [("ci", True), ("nightly", False)])
def test_cases_are_left_out_of_all_but_the_nightly_run(
    profile: str, share: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, profile)
    path, name = "tests/test_docs.py", "test_snippets_of_a_page_run"
    cases = [f"{path}::{name}[{number}]" for number in range(20)]
    items = [(case, case) for case in [*cases, f"{path}::test_other[1]"]]
    out = left_out(items)
    assert len(out) == (20 - CASES[path][name] if share else 0)
    assert not {cases[0], cases[-1], items[-1][0]} & {*out}
