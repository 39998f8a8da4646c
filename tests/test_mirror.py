"""`tests/` mirrors `sb3compat/`: the adapters' modules have each a test module of their name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.costly import CASES, short

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "sb3compat"

# The folders whose every module has a test module.
BY_MODULE = ("_convert", "_make", "_parallel", "_rows", "_to_sb3", "_to_gymnasium")
# Modules without a test module of their name, but for those that are empty; and why.
EXCEPTIONS = {
    "__init__.py": "its names are those of test_public_api.py, its imports those of test_import.py",
    "__main__.py": "calls cli.py",
    "cli.py": "runs the commands, which are tested in conformance/commands/",
    "pytest_plugin.py": "belongs to the kit, and is tested in conformance/",
}


def modules() -> list[str]:
    """The modules at the top of the package and in the folders `BY_MODULE`."""
    inner = (path for folder in BY_MODULE for path in (PACKAGE / folder).rglob("*.py"))
    found = (path for path in (*PACKAGE.glob("*.py"), *inner) if not is_empty(path))
    return sorted({path.relative_to(PACKAGE).as_posix() for path in found} - EXCEPTIONS.keys())


def is_empty(path: Path) -> bool:
    return set(compile(path.read_text(), path, "exec").co_names) <= {"__doc__"}


@pytest.mark.parametrize("module", modules())
def test_module_has_a_test_module_of_its_name(module: str) -> None:
    path = Path(module.removeprefix("_"))
    expected = TESTS / path.parent / f"test_{path.name}"
    assert expected.is_file(), f"tests/{expected.relative_to(TESTS)} is missing"
    assert "\ndef test_" in expected.read_text(), f"tests/{expected.relative_to(TESTS)} has no test"


def test_costly_tests_exist() -> None:
    existing = {
        short(f"tests/{path.relative_to(TESTS).as_posix()}::{function}")
        for path in TESTS.rglob("test_*.py")
        for function in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    assert CASES.keys() - existing == set()
