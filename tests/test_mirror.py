"""`tests/` mirrors `sb3compat/`: the adapters' modules have each a test module of their name."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "sb3compat"

# The folders whose every module has a test module.
BY_MODULE = ("_convert", "_make", "_parallel", "_rows", "_to_sb3", "_to_gymnasium")
# The folders that have a folder of tests, whose modules may have other names.
BY_FOLDER = ("_ipc", "_trace", "_tune", "_upstream", "conformance")
# Modules without a test module of their name, and why.
EXCEPTIONS = {
    "__init__.py": "its names are those of test_public_api.py, its imports those of test_import.py",
    "__main__.py": "calls cli.py",
    "cli.py": "runs the commands, which are tested in conformance/commands/",
    "pytest_plugin.py": "belongs to the kit, and is tested in conformance/",
    "_convert/__init__.py": "is empty",
    "_make/__init__.py": "is empty",
    "_parallel/__init__.py": "is empty",
    "_rows/__init__.py": "is empty",
    "_rows/source.py": "is a protocol",
    "_to_gymnasium/__init__.py": "is empty",
    "_to_sb3/__init__.py": "is empty",
    "_to_sb3/backends/__init__.py": "is empty",
}


def modules() -> list[str]:
    """The modules at the top of the package and in the folders `BY_MODULE`."""
    inner = (path for folder in BY_MODULE for path in (PACKAGE / folder).rglob("*.py"))
    return sorted(path.relative_to(PACKAGE).as_posix() for path in (*PACKAGE.glob("*.py"), *inner))


@pytest.mark.parametrize("module", [name for name in modules() if name not in EXCEPTIONS])
def test_module_has_a_test_module_of_its_name(module: str) -> None:
    path = Path(module.removeprefix("_"))
    expected = TESTS / path.parent / f"test_{path.name}"
    assert expected.is_file(), f"tests/{expected.relative_to(TESTS)} is missing"
    assert "\ndef test_" in expected.read_text(), f"tests/{expected.relative_to(TESTS)} has no test"


def test_folder_of_the_package_has_a_folder_of_tests() -> None:
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == {*BY_MODULE, *BY_FOLDER}
    for folder in folders:
        assert any((TESTS / folder.removeprefix("_")).rglob("test_*.py")), f"tests/{folder}"


def test_exceptions_are_modules_and_the_empty_ones_are_empty() -> None:
    assert set(EXCEPTIONS) <= set(modules())
    for name, reason in EXCEPTIONS.items():
        if reason == "is empty":
            code = compile((PACKAGE / name).read_text(), name, "exec").co_names
            assert set(code) <= {"__doc__", "annotations"}, name
