"""Reading the source code of installed libraries, without importing them.

`sb3compat versions` has to look into Stable-Baselines3 without loading torch, and into environment
libraries without loading their engines. So it parses their files.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

Read = Callable[[Path], str]
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def is_installed(library: str) -> bool:
    """Whether a top-level module can be imported."""
    return find_spec(library) is not None


def read_file(path: Path) -> str:
    """The source code in a file."""
    return path.read_text("utf-8")


class Sources:
    """The parsed modules of installed libraries.

    Args:
        read: How to read a file; a test can change what is in it.
    """

    def __init__(self, read: Read = read_file) -> None:
        self._read = read
        self._trees: dict[str, ast.Module | None] = {}

    def module(self, name: str) -> ast.Module | None:
        """A module; None if there is none of that name, or none in Python."""
        if name not in self._trees:
            path = _file_of(name)
            self._trees[name] = None if path is None else ast.parse(self._read(path))
        return self._trees[name]

    def has_name(self, module: str, name: str) -> bool:
        """Whether a module defines or imports `name`."""
        tree = self.module(module)
        if tree is None:
            return _is_builtin(module) and hasattr(import_module(module), name)
        return any(name in _names_of(statement) for statement in _statements(tree))

    def definition(self, module: str, qualname: str) -> Definition | None:
        """A class or function, also one that the module imports; `qualname` may have a dot."""
        found = self._locate(module, qualname)
        return None if found is None else found[1]

    def has_attribute(self, module: str, cls: str, name: str) -> bool:
        """Whether a class, or a base of it, defines `name`, or sets it on its instances."""
        home, node = self._locate(module, cls) or ("", None)
        if not isinstance(node, ast.ClassDef):
            return False
        if name in _attributes_of(node):
            return True
        bases = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
        return any(
            self.has_attribute(home, base.id, name)
            for base in bases
            if isinstance(base, ast.Name) and base.id != cls
        )

    def _locate(self, module: str, qualname: str) -> tuple[str, Definition] | None:
        """The module that defines a class or function, and the definition."""
        tree = self.module(module)
        first, _, rest = qualname.partition(".")
        for statement in () if tree is None else _statements(tree):
            if isinstance(statement, Definition) and statement.name == first:
                return (module, statement) if not rest else self._method(module, statement, rest)
            if isinstance(statement, ast.ImportFrom):
                for alias in statement.names:
                    if (alias.asname or alias.name) == first:
                        source = _absolute(module, statement)
                        return self._locate(source, qualname.replace(first, alias.name, 1))
        return None

    def _method(self, module: str, cls: Definition, name: str) -> tuple[str, Definition] | None:
        for statement in cls.body:
            if isinstance(statement, Definition) and statement.name == name:
                return module, statement
        return None


def _file_of(module: str) -> Path | None:
    top, *rest = module.split(".")
    spec = find_spec(top)
    if spec is None or spec.origin in (None, "built-in", "frozen"):
        return None
    if not rest:
        return Path(str(spec.origin))
    for folder in spec.submodule_search_locations or ():
        path = Path(folder, *rest)
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return file
    return None


def _is_builtin(module: str) -> bool:
    spec = find_spec(module.partition(".")[0])
    return spec is not None and spec.origin in ("built-in", "frozen")


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements of a module, those under a condition or a `try` included."""
    pending: list[ast.stmt] = list(tree.body)
    while pending:
        statement = pending.pop(0)
        yield statement
        if isinstance(statement, ast.If | ast.Try):
            pending += [*statement.body, *statement.orelse]
        if isinstance(statement, ast.Try):
            pending += [inner for handler in statement.handlers for inner in handler.body]


def _names_of(statement: ast.stmt) -> set[str]:
    if isinstance(statement, Definition):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name for alias in statement.names}
    return _stored(statement)


def _attributes_of(cls: ast.ClassDef) -> set[str]:
    """What a class body defines, and what its methods set on `self`."""
    names: set[str] = set()
    for statement in cls.body:
        # An annotation alone sets nothing.
        if not (isinstance(statement, ast.AnnAssign) and statement.value is None):
            names |= _names_of(statement)
    for node in ast.walk(cls):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names |= {node.attr} if _is_self(node.value) else set()
    return names


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _stored(node: ast.AST) -> set[str]:
    return {
        inner.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
    }


def locals_of(function: ast.AST) -> set[str]:
    """The local variables of a function: those that it assigns, and its parameters."""
    return _stored(function) | {n.arg for n in ast.walk(function) if isinstance(n, ast.arg)}


def _absolute(module: str, statement: ast.ImportFrom) -> str:
    if not statement.level:
        return statement.module or ""
    path = _file_of(module)
    parts = module.split(".")
    up = statement.level - (1 if path is not None and path.name == "__init__.py" else 0)
    return ".".join([*parts[: len(parts) - up], *filter(None, [statement.module])])
