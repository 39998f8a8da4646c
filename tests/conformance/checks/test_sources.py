"""The lines that the sources of the checks lead to."""

from __future__ import annotations

import ast
import re
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import pytest

from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.checks.tools.sources import RELEASES
from sb3compat.conformance.contract import Check
from sb3compat.conformance.findings import Family

PLACES = [(family, place) for family, (_, _, _, places) in RELEASES.items() for place in places]
IN_CODE = [check for check in checks_of() if "github.com" in check.source]


def installed_lines(family: Family, place: str) -> tuple[int, int]:
    """The first and the last line of a class, up to its first method, or of a method."""
    file, name = place.split()
    folder = RELEASES[family][2]
    spec = find_spec(folder.partition("/")[0])
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parents[1] / folder / f"{file}.py"
    body: list[ast.stmt] = ast.parse(path.read_text("utf-8")).body
    for part in name.split("."):
        named = (node for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef))
        (node,) = (node for node in named if node.name == part)
        body = node.body
    assert node.end_lineno is not None
    if isinstance(node, ast.FunctionDef):
        return node.lineno, node.end_lineno
    first = next(inner for inner in body if isinstance(inner, ast.FunctionDef))
    return node.lineno, first.lineno - len(first.decorator_list) - 2


@pytest.mark.parametrize(("family", "place"), PLACES)
def test_lines_are_those_of_the_release(family: Family, place: str) -> None:
    library, known, _, places = RELEASES[family]
    try:
        found = version(library)
    except PackageNotFoundError:
        found = "no version"
    if found != known:
        pytest.skip(f"the lines are those of {library} {known}, and {found} is installed")
    assert places[place][:2] == installed_lines(family, place)


@pytest.mark.parametrize("check", IN_CODE, ids=lambda check: f"{check.family}-{check.id}")
def test_a_source_in_code_leads_to_lines_of_a_release(check: Check) -> None:
    assert re.fullmatch(r"https://github\.com/.*/blob/v[\d.]+/.*\.py#L\d+-L\d+", check.source)


if __name__ == "__main__":
    for known in PLACES:
        print(*known, installed_lines(*known))
