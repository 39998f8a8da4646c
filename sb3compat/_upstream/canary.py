"""Which of the private names that this package relies on are missing in what is installed.

By reading the source code of the libraries: nothing is imported, and no environment is stepped.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from sb3compat._upstream.patterns import branch, can_be_called, contains, is_body
from sb3compat._upstream.private import installed_version
from sb3compat._upstream.sources import Sources, is_installed, locals_of
from sb3compat._upstream.table import NAMES, Kind, Name
from sb3compat._upstream.versions import release


def missing(names: Iterable[Name] = NAMES, sources: Sources | None = None) -> list[Name]:
    """The names that are not found.

    Left out are those of libraries that are not installed (see `skipped`), and those of later
    releases than the one that is.

    Args:
        names: The names to look up; by default all of them.
        sources: The source code of the libraries; by default what is installed.
    """
    sources = sources or Sources()
    return [name for name in names if _is_expected(name) and not is_there(name, sources)]


def skipped(names: Iterable[Name] = NAMES) -> list[str]:
    """The libraries whose names were not looked up, as they are not installed."""
    libraries = dict.fromkeys(name.library for name in names)
    return [library for library in libraries if not is_installed(library)]


def is_there(name: Name, sources: Sources) -> bool:
    """Whether a name is found in the source code."""
    if name.kind is Kind.NAME:
        return sources.has_name(name.module, name.name)
    if name.kind is Kind.ATTRIBUTE:
        return sources.has_attribute(name.module, name.qualname, name.name)
    if name.kind is Kind.METHOD:
        return _has_method(name, sources)
    function = sources.definition(name.module, name.qualname)
    return function is not None and _is_in(function, name)


def _is_expected(name: Name) -> bool:
    if not is_installed(name.library):
        return False
    version = installed_version(name.library)
    return not name.since or version is None or release(version) >= release(name.since)


def _has_method(name: Name, sources: Sources) -> bool:
    (statement,) = ast.parse(name.name).body
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        raise ValueError(f"Expected a call such as 'method(one, two=2)', got {name.name!r}.")
    method = sources.definition(name.module, f"{name.qualname}.{call.func.id}")
    return isinstance(method, ast.FunctionDef) and can_be_called(method, call)


def _is_in(function: ast.AST, name: Name) -> bool:
    if name.kind is Kind.LOCAL:
        return name.name in locals_of(function)
    if name.kind is Kind.COMMAND:
        return branch(function, name.name) is not None
    if name.kind is Kind.BODY:
        return is_body(function, name.name)
    command, arrow, pattern = name.name.rpartition(" -> ")
    place = branch(function, command) if arrow else function
    return place is not None and contains(place, pattern)
