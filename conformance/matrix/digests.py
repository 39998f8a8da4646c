"""Digests of the sources that decide the outcomes: where one has changed, its outcomes are stale.

A digest is of what a module does. Comments, docstrings, formatting and the place of the file do not
count. Imports do: a module that imports from a file that has moved has another digest.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from conformance.matrix.specimens import sections
from sb3compat.conformance.checks.catalogue import checks_of

ROOT = Path(__file__).parents[2]
# What runs the checks on a mutant; all that it imports from this repository counts as well.
_START = "conformance.matrix.outcomes"
_LENGTH = 16
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

ByPath = Mapping[str, str]


@dataclass(frozen=True)
class Digests:
    """The digest of each file, by its path from the root of the repository.

    Attributes:
        core: The modules that every outcome depends on.
        checks: The modules in which checks stand.
        mutants: The modules in which mutants stand.
    """

    core: ByPath
    checks: ByPath
    mutants: ByPath

    def to_dict(self) -> dict[str, dict[str, str]]:
        """As JSON has it."""
        return {kind: dict(sorted(files.items())) for kind, files in asdict(self).items()}


NONE = Digests({}, {}, {})


@cache
def present() -> Digests:
    """The digests of the sources as they are."""
    checks = {path_of(check.function.__module__) for check in checks_of()}
    # What other checks import from decides about them as well.
    checks -= {path for check in checks for path in imported([check]) - {check}}
    mutants = {path_of(mutant.module) for section in sections() for mutant in section.mutants}
    core = imported([path_of(_START), *checks, *mutants]) - checks - mutants
    return Digests(_digests(core), _digests(checks), _digests(mutants))


def changed(recorded: ByPath, found: ByPath) -> set[str]:
    """The files whose content is not recorded, under whatever path."""
    known = set(recorded.values())
    return {path for path, digest in found.items() if digest not in known}


def gone(recorded: ByPath, found: ByPath) -> set[str]:
    """The files that are recorded and no longer there, under whatever path."""
    return changed(found, recorded) - set(found)


def differences(recorded: Digests, found: Digests) -> list[str]:
    """What has changed since the outcomes were recorded, a line for each file."""
    lines = []
    for kind, there in found.to_dict().items():
        before = recorded.to_dict()[kind]
        for path in sorted(changed(before, there)):
            word = "has changed" if path in before else "is new"
            lines.append(f"{path} ({kind}) {word}")
        lines += [f"{path} ({kind}) is gone" for path in sorted(gone(before, there))]
    return lines


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


def _digests(paths: Iterable[str]) -> dict[str, str]:
    return {path: digest((ROOT / path).read_text(encoding="utf-8")) for path in sorted(paths)}


def digest(source: str) -> str:
    """The digest of what a module does; the same for each version of Python."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return sha256(_written(tree).encode()).hexdigest()[:_LENGTH]


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
