"""Source that defines `make_env`, for a factory that is a Python object.

The source is an import, or the text of the function with all that it uses. If neither is certain to
run, it is a placeholder, which the user replaces.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import symtable
import sys
from collections.abc import Mapping
from textwrap import dedent
from types import CodeType, FunctionType, ModuleType
from typing import TypeVar

from sb3compat.conformance.program.types import Factory, Reference

PLACEHOLDER = "make_env = ...  # your factory"
_REFERENCE = "reference = ...  # the factories of its single environments, one for each row"

_CONSTANTS = (bool, int, float, complex, str, bytes, type(None))


class _NoSourceError(Exception):
    """There is no source for this object."""


def factory_source(factory: Factory, reference: Reference | None = None) -> str:
    """Source that defines `make_env`, and `reference` if there is one."""
    text = definition(factory, "make_env") or PLACEHOLDER
    if reference is None:
        return text
    singles = list(reference)
    single = definition(singles[0], "make_single") if singles else None
    if single is None or any(other is not singles[0] for other in singles):
        return f"{text}\n{_REFERENCE}"
    return f"{text}\n\n{single}\n\nreference = [make_single] * {len(singles)}"


def definition(factory: object, name: str) -> str | None:
    """Source that defines a function under a name, or None if there is none."""
    try:
        imported = _imported(factory, name)
        if imported:
            return imported
        if not isinstance(factory, FunctionType):
            return None
        writer = _Writer()
        own = writer.function(factory, name)
        text = "\n\n".join([*filter(None, ["\n".join(sorted(writer.imports))]), *writer.texts, own])
        compile(text, "<make_env>", "exec")
    except (_NoSourceError, OSError, TypeError, SyntaxError, ValueError):
        return None
    return text


def _imported(value: object, name: str) -> str | None:
    """The import statement for an object, or None if another script cannot import it."""
    if isinstance(value, ModuleType):
        return f"import {value.__name__}" + (f" as {name}" if name != value.__name__ else "")
    module, path = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if not isinstance(module, str) or module == "__main__" or not path.isidentifier():
        return None
    if getattr(sys.modules.get(module), path, None) is not value:
        return None
    return f"from {module} import {path}" + (f" as {name}" if name != path else "")


class _Writer:
    """Collects the source that functions and classes need besides imports."""

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self.texts: list[str] = []
        self._known: dict[str, object] = {}

    def function(self, function: FunctionType, name: str) -> str:
        """The text of a function under another name; the text of what it uses is in `texts`."""
        node = _without_annotations(_node_of(function))
        outer = dict(function.__globals__)
        for free, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            outer[free] = cell.cell_contents
        self._needs(node, outer, own=function.__name__)
        if isinstance(node, ast.Lambda):
            if node.args.args or node.args.kwonlyargs or node.args.vararg or node.args.kwarg:
                raise _NoSourceError
            return f"def {name}():\n    return {ast.unparse(node.body)}"
        node.name = name
        node.decorator_list = []
        return ast.unparse(node)

    def _needs(self, node: ast.AST, outer: Mapping[str, object], own: str) -> None:
        for name in sorted(_globals_of(node) - {own}):
            if name in outer:
                self._define(name, outer[name])
            elif not hasattr(builtins, name):
                raise _NoSourceError

    def _define(self, name: str, value: object) -> None:
        if name in self._known:
            if self._known[name] is not value:
                raise _NoSourceError
            return
        self._known[name] = value
        imported = _imported(value, name)
        if imported:
            self.imports.add(imported)
        elif isinstance(value, _CONSTANTS):
            self.texts.append(f"{name} = {value!r}")
        elif isinstance(value, FunctionType):
            self.texts.append(self.function(value, name))
        elif isinstance(value, type) and name == value.__name__:
            if "<locals>" in value.__qualname__:
                raise _NoSourceError
            node = _without_annotations(ast.parse(dedent(inspect.getsource(value))).body[0])
            self._needs(node, vars(sys.modules[value.__module__]), own=name)
            self.texts.append(ast.unparse(node))
        else:
            raise _NoSourceError


Node = TypeVar("Node", bound=ast.AST)


def _without_annotations(node: Node) -> Node:
    """The tree without annotations, which may name imports for type checkers only."""
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef):
            part.returns = None
        elif isinstance(part, ast.arg):
            part.annotation = None
    return node


def _globals_of(node: ast.AST) -> set[str]:
    """The names that a function or class takes from outside."""
    tree = symtable.symtable(ast.unparse(node), "<node>", "exec")
    names: set[str] = set()
    tables = [tree]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        names |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_global() or (table is tree and symbol.is_referenced())
        }
    return names


def _node_of(function: FunctionType) -> ast.FunctionDef | ast.Lambda:
    """The syntax tree of a function; the code tells several lambdas on one line apart."""
    code = function.__code__
    tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.Lambda)
        and min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        == code.co_firstlineno
        and getattr(node, "name", "<lambda>") == function.__name__
    ]
    if len(found) > 1:
        found = [node for node in found if isinstance(node, ast.Lambda) and _same(node, code)]
    if len({ast.dump(node) for node in found}) != 1:
        raise _NoSourceError
    return found[0]


def _same(node: ast.Lambda, code: CodeType) -> bool:
    compiled = compile(ast.Expression(node), "<lambda>", "eval").co_consts[0]
    return isinstance(compiled, CodeType) and (
        (compiled.co_code, compiled.co_names) == (code.co_code, code.co_names)
        and [c for c in compiled.co_consts if not isinstance(c, CodeType)]
        == [c for c in code.co_consts if not isinstance(c, CodeType)]
    )
