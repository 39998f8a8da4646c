"""Which module of the kit imports which: no circles, no upward imports, no adapters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import sb3compat

KIT = "sb3compat.conformance"
ROOT = Path(sb3compat.__file__).parents[1]


def modules() -> dict[str, ast.Module]:
    """The syntax tree of each module of the kit."""
    found = {}
    for path in sorted((ROOT / "sb3compat" / "conformance").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


MODULES = modules()
# Not an adapter: the exceptions, and the line that messages print to install an extra.
BESIDES = {"sb3compat.errors"}


def imported(name: str, tree: ast.Module) -> Iterator[str]:
    """Each module of sb3compat that a module imports, for type checkers or in functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("sb3compat"))
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name} imports relatively"
            home = node.module or ""
            for alias in node.names if home.split(".")[0] == "sb3compat" else ():
                whole = f"{home}.{alias.name}"
                yield whole if whole in MODULES else home


# The package itself resolves its public names on first use, and nothing in it imports them there.
IMPORTS = {
    name: set(imported(name, tree)) - BESIDES for name, tree in MODULES.items() if name != KIT
}


def rooms() -> list[str]:
    """The rooms of the kit, the lowest first, as its docstring lists them."""
    return re.findall(r"^- `(\w+)`:", ast.get_docstring(MODULES[KIT]) or "", re.MULTILINE)


def room_of(name: str) -> int:
    return rooms().index(name.removeprefix(f"{KIT}.").partition(".")[0])


@pytest.mark.parametrize("name", IMPORTS)
def test_no_module_imports_from_a_higher_room(name: str) -> None:
    upward = {other for other in IMPORTS[name] if room_of(other) > room_of(name)}
    assert not upward


def test_the_folders_are_the_rooms() -> None:
    found = {path.stem for path in (ROOT / "sb3compat" / "conformance").glob("[!_]*")}
    assert found == set(rooms())


@pytest.mark.parametrize("family", ["vec_env", "vector_env"])
def test_the_families_of_checks_are_apart(family: str) -> None:
    other = {"vec_env": "vector_env", "vector_env": "vec_env"}[family]
    home, away = f"{KIT}.checks.{family}.", f"{KIT}.checks.{other}."
    assert not [
        (name, found)
        for name, modules in IMPORTS.items()
        for found in modules
        if name.startswith(home) and found.startswith(away)
    ]
