"""The table of private names holds for what is installed, and no entry of it can hold by chance."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sb3compat._upstream.canary import missing, skipped
from sb3compat._upstream.report import description
from sb3compat._upstream.sources import Sources, is_installed, read_file
from sb3compat._upstream.table import NAMES, Kind, Name
from tests.profiles import spread

PACKAGE = Path(__file__).parents[2] / "sb3compat"
each_name = pytest.mark.parametrize("name", NAMES, ids=str)


def pattern_of(name: Name) -> ast.AST:
    """The code that an entry names."""
    return ast.parse(name.name.rpartition(" -> ")[2])


def expected(name: Name) -> Name:
    """The entry, if it can be looked up in what is installed."""
    if not is_installed(name.library):
        pytest.skip(f"{name.library} is not installed")
    if name.since:
        before = name._replace(name=f"{name.name}_gone")
        if not missing([before]):
            pytest.skip(f"{name.library} has it since {name.since}")
    return name


class Altered(ast.NodeTransformer):
    """Changes one thing of a pattern: the n-th attribute, function name, key or tuple."""

    def __init__(self, which: int) -> None:
        self.which, self.seen = which, 0

    def _is_meant(self) -> bool:
        self.seen += 1
        return self.seen == self.which

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if self._is_meant():
            node.attr += "_gone"
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if self._is_meant():
            node.value = f"{node.value!r}_gone"
        return node

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        self.generic_visit(node)
        if self._is_meant():
            node.elts.append(ast.Name("more", node.ctx))
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if self._is_meant():
            node.args += [ast.Name("more", ast.Load()) for _ in range(9)]
        return node


def altered(name: Name) -> Iterator[Name]:
    """The entry with one thing changed: as it would read if upstream had another name or form."""
    command, arrow, pattern = name.name.rpartition(" -> ")
    if arrow:
        yield name._replace(name=f"{command}_gone -> {pattern}")
    if name.kind in (Kind.NAME, Kind.ATTRIBUTE, Kind.LOCAL, Kind.COMMAND):
        yield name._replace(name=f"{name.name}_gone")
    else:
        if name.kind is Kind.METHOD:
            yield name._replace(name=name.name.replace("(", "_gone(", 1))
        for which in range(1, 99):
            change = Altered(which)
            code = ast.unparse(change.visit(pattern_of(name)))
            if change.seen < which:
                break
            if name.kind is Kind.METHOD and "_gone" in code:
                continue  # a value that is passed to it
            yield name._replace(name=f"{command}{arrow}{'; '.join(code.splitlines())}")
    if name.qualname:
        yield name._replace(where=f"{name.where}_gone")
    yield name._replace(where=name.where.replace(name.module, f"{name.module}_gone", 1))


def word_of(name: Name) -> str:
    """The word that upstream could rename: what the entry is all about."""
    if name.kind in (Kind.NAME, Kind.ATTRIBUTE, Kind.LOCAL, Kind.COMMAND):
        return name.name
    if name.kind is Kind.METHOD:
        return name.name.partition("(")[0]
    if " -> " in name.name:
        return name.name.partition(" -> ")[0]
    return next(node.attr for node in ast.walk(pattern_of(name)) if isinstance(node, ast.Attribute))


@each_name
def test_private_name_is_there(name: Name) -> None:
    assert not missing([expected(name)]), "\n".join(["look at this:", *description(name)])


@each_name
def test_entry_with_another_name_or_form_is_missing(name: Name) -> None:
    every = [one for one in altered(expected(name)) if is_installed(one.library)]
    assert every
    changed = spread(every, 4)
    assert [str(one) for one in changed if one not in missing(changed)] == []


@each_name
def test_name_that_upstream_renames_is_missing(name: Name) -> None:
    if name.module == "sys":
        pytest.skip("sys is not written in Python")
    word = word_of(expected(name))

    def renamed(path: Path) -> str:
        return re.sub(rf"\b{re.escape(word)}\b", f"{word}_gone", read_file(path))

    assert missing([name], Sources(renamed)) == [name]


@each_name
def test_entry_is_used_where_it_says(name: Name) -> None:
    file = PACKAGE / name.used_in
    text = file.read_text("utf-8")
    assert word_of(name) in text or f'"{name.module}"' in text


def test_entries_are_all_different() -> None:
    assert len({(name.where, name.kind, name.name) for name in NAMES}) == len(NAMES)


def test_every_name_read_by_private_is_in_the_table() -> None:
    known = {word_of(name) for name in NAMES} | {"RecordVideo"}  # public, and missing in 1.1
    read = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "private":
                name = node.args[1]
                if isinstance(name, ast.Constant):
                    read.add(name.value)
    assert read
    assert read - known == set()


def test_later_names_are_not_expected_of_this_version() -> None:
    gone = next(name for name in NAMES if name.library == "gymnasium")._replace(name="gone")
    assert missing([gone]) == [gone]
    earlier, later = gone._replace(since="1.1"), gone._replace(since="99.0")
    assert missing([earlier, later]) == [earlier]


def test_library_that_is_not_installed_is_skipped() -> None:
    other = Name("no_such_library.core", Kind.NAME, "anything", "_upstream/table/", "nothing")
    assert missing([other]) == []
    assert skipped([other, NAMES[0]]) == ["no_such_library"]


def package(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_what_a_module_imports_and_a_class_inherits_is_found(tmp_path: Path, request: Any) -> None:
    package(
        tmp_path,
        {
            "canary_sample/__init__.py": "from canary_sample.core import Child as Known\n",
            "canary_sample/core.py": """
from canary_sample.base import Base
try:
    import fast
except ImportError:
    class Fallback: ...
class Child(Base[int]):
    own = 1
    def f(self, one, two=2, *, three=3): ...
""",
            "canary_sample/base.py": """
class Base:
    def __init__(self):
        self.first, self.second = 1, 2
        other.third = 3
""",
        },
    )
    request.getfixturevalue("monkeypatch").syspath_prepend(str(tmp_path))

    def there(where: str, kind: Kind, name: str) -> bool:
        return not missing([Name(f"canary_sample{where}", kind, name, "", "")])

    assert there("", Kind.NAME, "Known")
    assert not there("", Kind.NAME, "Child")
    assert there(".core", Kind.NAME, "Fallback")
    for name in ("own", "first", "second", "f"):
        assert there(":Known", Kind.ATTRIBUTE, name)
    assert not there(":Known", Kind.ATTRIBUTE, "third")
    for call in ("f(1)", "f(1, 2)", "f(1, three=3)", "f(one=1)"):
        assert there(":Known", Kind.METHOD, call)
    for call in ("f()", "f(1, 2, 3)", "f(1, four=4)", "g()"):
        assert not there(":Known", Kind.METHOD, call)


def test_annotation_alone_is_no_attribute() -> None:
    source = """
class Env:
    kept: int = 1
    told: int

    def __init__(self):
        self.set = 2
"""
    sources = Sources(lambda path: source)
    module = "gymnasium.core"
    found = [name for name in ("kept", "told", "set") if sources.has_attribute(module, "Env", name)]
    assert found == ["kept", "set"]
