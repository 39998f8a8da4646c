"""Assertions in NumPy's words.

Checks compare observations of any space, with helpers that become part of the reproduction. If the
values are arrays, an index or a function of NumPy says the same, and the script is as short as one
that a person wrote.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np

from sb3compat.conformance.program.script import PRELUDE

_Value = Callable[[str], Any]


@dataclass(frozen=True)
class Plain:
    """A statement that may have been rewritten.

    Attributes:
        line: The statement.
        rows: The new source for rows of batches, by the old source.
    """

    line: str
    rows: Mapping[str, str] = field(default_factory=dict)

    def told(self, message: str) -> str:
        """The message, with the rows written as in the statement."""
        for before, now in self.rows.items():
            message = message.replace(before, now)
        return message


def without_helpers(line: str, value: _Value) -> Plain:
    """An assertion that failed, with NumPy in place of helpers where its values allow it.

    Args:
        line: The statement; one that is no assertion stays as it is.
        value: Evaluates an expression in the state of the failure.
    """
    same = Plain(line)
    statement = ast.parse(line).body[-1]
    if not isinstance(statement, ast.Assert) or not isinstance(statement.msg, ast.Constant):
        return same
    rewriting = _Rewriting(value)
    condition = ast.unparse(rewriting.visit(statement.test))
    with suppress(Exception):
        if rewriting.changes and not value(condition):
            message = Plain("", rewriting.rows).told(str(statement.msg.value))
            return Plain(f"assert {condition}, {message!r}", rewriting.rows)
    return same


class _Rewriting(ast.NodeTransformer):
    def __init__(self, value: _Value) -> None:
        self.value = value
        self.changes = 0
        self.rows: dict[str, str] = {}

    def visit_Call(self, node: ast.Call) -> ast.AST:
        before = ast.unparse(node)
        rewrite = _REWRITES.get(node.func.id) if isinstance(node.func, ast.Name) else None
        simple = rewrite and not node.keywords and not any(map(_acts, node.args))
        sources = [ast.unparse(argument) for argument in node.args]
        self.generic_visit(node)
        after = None
        if rewrite and simple:
            with suppress(Exception):  # an argument without a value, or without such a method
                after = rewrite(list(map(self.value, sources)), *map(ast.unparse, node.args))
        if not after:
            return node
        self.changes += 1
        if before.startswith("row("):
            self.rows[before] = after
        return ast.parse(after, mode="eval").body

    def _leave(self, node: ast.AST) -> ast.AST:
        """Leave a scope of its own alone: its names mean something else than outside."""
        return node

    visit_GeneratorExp = visit_ListComp = _leave  # noqa: N815
    visit_SetComp = visit_DictComp = visit_Lambda = _leave  # noqa: N815


def _acts(argument: ast.expr) -> bool:
    """Whether an argument calls a function that might change its object."""
    calls = [node for node in ast.walk(argument) if isinstance(node, ast.Call)]
    return any(ast.unparse(call.func) not in _REWRITES for call in calls)


def _row(values: list[object], batch: str, i: str) -> str | None:
    return None if isinstance(values[0], dict | tuple) else f"{batch}[{i}]"


def _equal(values: list[object], a: str, b: str) -> str | None:
    # Arrays of objects have no `isnan`, and keep the helper.
    same = all(_is_array(value) and not np.isnan(value).any() for value in values)
    return f"np.array_equal({a}, {b})" if same else None


def _overlap(values: list[object], a: str, b: str) -> str | None:
    arrays = all(isinstance(value, np.ndarray) for value in values)
    return f"np.shares_memory({a}, {b})" if arrays else None


def _inside(values: list[Any], space: str, value: str) -> str | None:
    if not _is_array(values[1]) or values[0].contains(values[1]) != PRELUDE["inside"](*values):
        return None
    return f"{space}.contains({value})"


def _is_array(value: object) -> TypeGuard[np.ndarray | np.generic]:
    return isinstance(value, np.ndarray | np.generic)


_REWRITES: dict[str, Callable[..., str | None]] = {
    "row": _row,
    "equal": _equal,
    "overlap": _overlap,
    "inside": _inside,
}
