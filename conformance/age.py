"""Whether a generated page is older than the code that it judges with: it then says so at its top.

    python -m conformance.age

brings that line up to date in the pages of `make conformance` and of `unseen.judge`; the kill
matrix does it by itself. A page or its record keeps a digest of the sources. It is of what the
modules do: comments, docstrings, formatting, and the places of the files do not count, so that it
survives a move.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[1]
_LENGTH = 16
_OLDER = "*This page is older than the code that is here.*"
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

# The pages that hold a digest of the kit in their last line, and what writes them.
PAGES = {
    "conformance/RESULTS.md": "make conformance",
    "conformance/SEEDS.md": 'make conformance ARGS="--seeds 20"',
    "conformance/UNSEEN.md": "python -m conformance.specimens.unseen.judge",
}


def kit() -> str:
    """The digest of the kit, without its commands and its output, which judge nothing."""
    folder = ROOT / "sb3compat" / "conformance"
    paths = (path for path in folder.rglob("*.py") if not {"commands", "output"} & {*path.parts})
    return _together(str(path.relative_to(ROOT)) for path in paths)


def stamped(page: str, digest: str) -> str:
    """The page with a last line that keeps the digest and is not shown."""
    return f"{page.rstrip()}\n\n<!-- kit: {digest} -->\n"


def up_to_date(path: str) -> str:
    """The text of one of `PAGES`, with or without the line that says that it is older."""
    text = (ROOT / path).read_text(encoding="utf-8")
    stamp = re.search(r"<!-- kit: (\w+) -->\s*\Z", text)
    return with_age(text, not stamp or stamp[1] != kit(), PAGES[path])


def with_age(page: str, older: bool, command: str) -> str:
    """The page, with a line below its title if it is older than the code, and without otherwise."""
    title, _, rest = page.partition("\n\n")
    if rest.startswith(_OLDER):
        rest = rest.partition("\n\n")[2]
    line = f"{_OLDER} Run `{command}`.\n\n" if older else ""
    return f"{title}\n\n{line}{rest}"


@cache
def digest_of(*modules: str) -> str:
    """The digest of these modules and of all that they import from this repository."""
    return _together(imported(map(path_of, modules)))


def _together(paths: Iterable[str]) -> str:
    each = sorted(digest((ROOT / path).read_text(encoding="utf-8")) for path in paths)
    return _hashed(" ".join(each))


def path_of(module: str) -> str:
    """The path of a module of this repository, from its root; empty for another module."""
    stem = module.replace(".", "/")
    found = (path for path in (f"{stem}.py", f"{stem}/__init__.py") if (ROOT / path).is_file())
    return next(found, "")


def imported(paths: Iterable[str]) -> set[str]:
    """These files, and those of this repository that they import, and so on."""
    waiting = list(paths)
    found: set[str] = set()
    while waiting:
        path = waiting.pop()
        if path and path not in found:
            found.add(path)
            waiting += _imports(path)
    return found


@cache
def _imports(path: str) -> tuple[str, ...]:
    """The files of this repository that a file imports itself."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return tuple(filter(None, map(path_of, _names(tree))))


def _names(tree: ast.AST) -> Iterator[str]:
    """The modules that a module imports; those for type checkers do not count."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for statement in node.orelse:
                yield from _names(ast.Module([statement], []))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if path_of(inner) else node.module
        else:
            yield from _names(node)


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


if __name__ == "__main__":
    for each in PAGES:
        (ROOT / each).write_text(up_to_date(each), encoding="utf-8", newline="\n")
