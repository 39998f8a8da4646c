"""Digests of sources, by which a page knows whether it is older than the code that it judges.

They are of what the modules do: comments, docstrings, formatting, and the places of the files do
not count, so that they survive a move.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[1]
_LENGTH = 16
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def together(paths: Iterable[str], root: Path = ROOT) -> str:
    """The digest of these files, whose paths are those from the root."""
    each = sorted(digest((root / path).read_text(encoding="utf-8")) for path in paths)
    return _hashed(" ".join(each))


def path_of(module: str) -> str:
    """The path of a module of this repository, from its root; empty for another module."""
    stem = module.replace(".", "/")
    found = (path for path in (f"{stem}.py", f"{stem}/__init__.py") if (ROOT / path).is_file())
    return next(found, "")


@cache
def digest(source: str) -> str:
    """The digest of what a module does; the same for each version of Python."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
        # Where a file of this repository stands does not count; what is in it has its own digest.
        if isinstance(node, ast.ImportFrom) and path_of(node.module or ""):
            node.module = None
    return _hashed(_written(tree))


def _hashed(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:_LENGTH]


def _written(value: object) -> str:
    """A tree as text, without positions and without fields that hold nothing.

    `ast.dump` writes other texts in other versions of Python: newer ones have more fields.
    """
    if isinstance(value, ast.Constant):
        return ascii(value.value)
    if isinstance(value, ast.JoinedStr):
        # Python 3.12 adds an empty text to a format with a value in it.
        texts = [part for part in value.values if getattr(part, "value", None) != ""]
        return f"JoinedStr(values={_written(texts)})" if texts else "JoinedStr()"
    if isinstance(value, ast.AST):
        fields = ((name, getattr(value, name, None)) for name in value._fields)
        held = (f"{name}={_written(field)}" for name, field in fields if field not in (None, [], 0))
        return f"{type(value).__name__}({','.join(held)})"
    if isinstance(value, list):
        return f"[{','.join(map(_written, value))}]"
    return ascii(value)
