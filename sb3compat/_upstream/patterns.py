"""Whether a function contains code of some form, such as the answer to a worker's command.

A pattern is Python. A name in it stands for any expression that is not a tuple: an answer of
`(result, True)` differs from one of `result`, while what the variables are called means nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator


def contains(function: ast.AST, pattern: str) -> bool:
    """Whether a function has a statement or expression of that form."""
    (wanted,) = ast.parse(pattern).body
    node = wanted.value if isinstance(wanted, ast.Expr) else wanted
    return any(_alike(node, inner) for inner in ast.walk(function))


def is_body(function: ast.AST, pattern: str) -> bool:
    """Whether a function has these statements and, but for a docstring, no others."""
    body: list[ast.stmt] = getattr(function, "body", [])
    first = body[0] if body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        body = body[1:]
    return _alike(ast.parse(pattern).body, body)


def branch(function: ast.AST, command: str) -> ast.Module | None:
    """What a worker's loop does at a command: the body of `if command == "..."`."""
    for node in ast.walk(function):
        if isinstance(node, ast.If) and command in _compared(node.test):
            return ast.Module(node.body, [])
    return None


def can_be_called(function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call) -> bool:
    """Whether a method takes as many arguments as this call has, and these keywords."""
    given = function.args
    positional = [argument.arg for argument in (*given.posonlyargs, *given.args)][1:]
    optional = set(positional[len(positional) - len(given.defaults) :] if given.defaults else ())
    keywords = {keyword.arg for keyword in call.keywords}
    named = {argument.arg for argument in given.kwonlyargs} | set(positional)
    required = [name for name in positional[len(call.args) :] if name not in optional]
    required += [
        argument.arg
        for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
        if default is None
    ]
    return (
        (len(call.args) <= len(positional) or given.vararg is not None)
        and (keywords <= named or given.kwarg is not None)
        and set(required) <= keywords
    )


def _compared(test: ast.expr) -> Iterator[object]:
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq):
        for node in (test.left, *test.comparators):
            if isinstance(node, ast.Constant):
                yield node.value


def _alike(pattern: object, node: object) -> bool:
    if isinstance(pattern, ast.Name):
        return isinstance(node, ast.expr) and not isinstance(node, ast.Tuple)
    if isinstance(pattern, list):
        return (
            isinstance(node, list) and len(pattern) == len(node) and all(map(_alike, pattern, node))
        )
    if isinstance(pattern, ast.AST):
        return type(pattern) is type(node) and all(
            _alike(getattr(pattern, field, None), getattr(node, field, None))
            for field in pattern._fields
            if field not in ("ctx", "type_comment", "kind")
        )
    return pattern == node
