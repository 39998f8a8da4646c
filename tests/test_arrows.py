"""Imports point down only, the wings never meet, and private upstream names stay in one room.

The rooms are in `ROOMS`, the highest first; of those, only `_trace` and the top use the kit.
Imports inside functions and under `TYPE_CHECKING` count, and so do strings that name a module, as
for `import_module` and `sys.modules`. Outside of `_upstream/`, a private name of another library is
the literal argument of `private` or `set_private`, and it is in the table; every name of the table
is used.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sb3compat._upstream.table import NAMES

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "sb3compat"
TOP = ("__init__", "__main__", "_arguments", "_versions", "cli", "pytest_plugin")
ROOMS = (
    TOP,
    ("_trace", "_tune"),
    ("_make",),
    ("_parallel",),
    ("_to_sb3", "_to_gymnasium"),
    ("_rows",),
)
ROOMS += (("_ipc",), ("_upstream",), ("_convert",), ("errors",))
LEVEL = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}
KIT = "conformance"

# The functions that read private names, and which argument the name is.
ACCESSORS = {"private": 1, "set_private": 1, "local_of_worker": 0}
TABLE = {name.name for name in NAMES}
# Names of the table that mean something else here as well.
ALSO_OURS = {"autoreset_mode", "closed", "env", "high", "low", "observations", "steps"}
# What a class of ours may not define, as one of its bases upstream has it.
OF_BASES = {cls: {n.name for n in NAMES if n.owner == cls} for cls in ("VecEnv", "VectorEnv")}
BASES = {"VecEnv": "VecEnv", "VectorEnvBase": "VectorEnv", "VectorWrapperBase": "VectorEnv"}

OF_NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}
MAY_IMPORT_SB3 = [("_upstream", "sb3")]

Classes = dict[str, list[ast.ClassDef]]


def violations(package: Path) -> list[str]:
    """What breaks the rules in a package, as `file:line what`."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted(package.rglob("*.py"))}
    classes: Classes = {}
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append(node)
    found = []
    for path, tree in trees.items():
        file = path.relative_to(package).with_suffix("")
        if file.parts[0] not in {*LEVEL, KIT}:
            found.append(f"{file}.py:1 is in no room")
        rules = [bad_imports(tree, file.parts), bad_sb3(tree, file.parts)]
        if file.parts[0] != "_upstream":
            rules += [bad_names(tree), bad_own_names(tree, classes)]
        found += [f"{file}.py:{line} {what}" for rule in rules for line, what in rule]
    return found


Found = Iterator[tuple[int, str]]


def bad_imports(tree: ast.Module, file: tuple[str, ...]) -> Found:
    """Imports of a higher room, of the other wing, and between the kit and the adapters."""
    room = file[0]
    for line, module in imported(tree, file):
        parts = module.split(".")
        target = parts[1] if parts[1:] else "__init__"
        if parts[0] != "sb3compat" or target == room:
            continue
        if KIT in (room, target):
            allowed = room in (*TOP[1:], "_trace") or target in ("__init__", "errors")
        else:
            level, below = LEVEL.get(room, 0), LEVEL.get(target, 0)
            allowed = level < below or {room, target} <= {*TOP}
        if not allowed:
            yield line, f"{room} imports {module}"


def bad_sb3(tree: ast.Module, file: tuple[str, ...]) -> Found:
    """Imports of Stable-Baselines3 outside of the one module that may."""
    for line, module in imported(tree, file):
        if module.split(".")[0] == "stable_baselines3" and file not in MAY_IMPORT_SB3:
            yield line, f"imports {module}"


def imported(tree: ast.Module, file: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """The modules that a file imports by a statement, or names in a string, with the line."""
    documentation = set(docstrings(tree))
    package = ("sb3compat", *file[:-1])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *filter(None, [node.module])])
            # `from sb3compat import _upstream` imports a module, too.
            inner = module.split(".")[0] == "sb3compat" and len(module.split(".")) == 1
            names = [f"{module}.{a.name}" for a in node.names if a.name in {*LEVEL, KIT}]
            yield from ((node.lineno, name) for name in (names if inner and names else [module]))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = re.match(r"sb3compat\.(\w+)[\w.]*", node.value)
            if named and named[1] in {*LEVEL, KIT} and node not in documentation:
                yield node.lineno, named[0].rstrip(".")


def docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            yield first.value


def bad_names(tree: ast.Module) -> Found:
    """Private names of other libraries that are not read by one of `ACCESSORS`."""
    read = list(names_read(tree))
    for node in ast.walk(tree):
        if node in read:
            if not isinstance(node, ast.Constant) or node.value not in TABLE:
                yield node.lineno, f"reads {ast.unparse(node)}, which is not in the table"
        elif isinstance(node, ast.Attribute) and not is_self(node.value):
            if node.attr in TABLE - ALSO_OURS or is_private(node.attr):
                yield node.lineno, f"uses {ast.unparse(node)}"
        elif isinstance(node, ast.Constant) and node.value in TABLE and is_private(node.value):
            yield node.lineno, f"names {node.value!r}"
        elif isinstance(node, ast.ImportFrom):
            for alias in filter(lambda alias: is_private(alias.name), node.names):
                if (node.module or "").split(".")[0] != "sb3compat":
                    yield node.lineno, f"imports {alias.name}"


def names_read(tree: ast.Module) -> Iterator[ast.expr]:
    """The names that are read by one of `ACCESSORS`."""
    for node in ast.walk(tree):
        name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and name in ACCESSORS:
            yield node.args[ACCESSORS[name]]


def bad_own_names(tree: ast.Module, classes: Classes) -> Found:
    """Private attributes of `self` that no class of this package has defined, or that clash."""
    for cls in ast.walk(tree):
        if not isinstance(cls, ast.ClassDef):
            continue
        own, bases = owned(cls, classes)
        taken = {name for base in bases & {*BASES} for name in OF_BASES[BASES[base]]}
        for node in ast.walk(cls):
            if not (isinstance(node, ast.Attribute) and is_self(node.value)):
                continue
            if is_private(node.attr) and (node.attr not in own or node.attr in taken):
                yield node.lineno, f"uses {ast.unparse(node)} of a base in another library"


def owned(cls: ast.ClassDef, classes: Classes) -> tuple[set[str], set[str]]:
    """The names that a class and its bases in this package define; and all of its bases."""
    own: set[str] = set()
    for node in ast.walk(cls):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.attr if isinstance(node, ast.Attribute) else node.id)
    bases = {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in cls.bases}
    for base in list(bases):
        for definition in classes.get(base, []):
            if definition is not cls and base not in BASES:
                more, above = owned(definition, classes)
                own, bases = own | more, bases | above
    return own, bases


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in OF_NAMED_TUPLES


def is_self(node: ast.expr) -> bool:
    """Whether this is the object itself: `self`, `cls`, `super()` or `type(self)`."""
    if isinstance(node, ast.Call):
        return ast.unparse(node) in ("super()", "type(self)")
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def test_package_keeps_the_rules() -> None:
    assert violations(PACKAGE) == []


def test_every_name_of_the_table_is_used() -> None:
    used: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        if path.name == "table.py":
            continue
        tree = ast.parse(path.read_text("utf-8"))
        # In `_upstream/` also by loops, and classes by their path.
        strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        named = strings if path.parent.name == "_upstream" else list(names_read(tree))
        used |= {node.value for node in named if isinstance(node, ast.Constant)}
        used |= {one for node in strings for one in TABLE if str(node.value).endswith(f".{one}")}
    assert TABLE - used == set()
    assert len({(name.module, name.owner, name.name) for name in NAMES}) == len(NAMES)


def test_contributing_names_the_rooms_and_the_arrows() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    section = text.partition("## Where things live\n")[2].partition("\n## ")[0]
    (line,) = re.findall(r"^`__init__`.* → .*\.$", section, re.MULTILINE)
    levels = line.split(" → ")
    assert [tuple(re.findall(r"`(\w+)`", level)) for level in levels] == list(ROOMS)
    named = re.findall(r"\]\(([\w./]+)\)", section)
    assert [path for path in named if not (ROOT / path).exists()] == []
    here = {path.relative_to(ROOT).as_posix() for path in PACKAGE.iterdir() if path.suffix == ".py"}
    here |= {f"sb3compat/{path.parent.name}" for path in PACKAGE.glob("*/__init__.py")}
    assert here <= {*named}


BROKEN = [
    ("_convert/types", "def f():\n    from sb3compat import to_sb3", "_convert imports sb3compat"),
    ("_upstream/pipes", "from .._to_sb3 import adapter", "_upstream imports sb3compat._to_sb3"),
    (
        "_to_gymnasium/adapter",
        "import sys\nsys.modules.get('sb3compat._to_sb3.adapter')",
        "_to_gymnasium imports sb3compat._to_sb3.adapter",
    ),
    ("_to_sb3/adapter", "import sb3compat.conformance", "_to_sb3 imports sb3compat.conformance"),
    ("conformance/run", "import sb3compat._to_sb3", "conformance imports sb3compat._to_sb3"),
    ("conformance/run", "import sb3compat._trace", "conformance imports sb3compat._trace"),
    ("_upstream/pipes", "import stable_baselines3", "imports stable_baselines3"),
    ("new", "", "new.py:1 is in no room"),
    ("_to_sb3/adapter", "def f(env): return env._other", "uses env._other"),
    ("_to_sb3/adapter", "def f(env): private(env, '_other')", "'_other', which is not in"),
    ("_to_sb3/adapter", "def f(env, x): private(env, x)", "reads x, which is not in the table"),
    ("_convert/types", "def f(env): return getattr(env, '_seeds', 1)", "names '_seeds'"),
    ("conformance/run", "from pickle import _Unpickler", "imports _Unpickler"),
    (
        "_to_sb3/adapter",
        "class A(VecEnv):\n    def f(self): self._seeds = 1",
        "uses self._seeds of a base in another library",
    ),
    (
        "_to_sb3/adapter",
        "class A(VectorWrapperBase[int]):\n    def f(self): return super()._add_info({}, {}, 0)",
        "uses super()._add_info of a base in another library",
    ),
]


@pytest.mark.parametrize(("file", "text", "what"), BROKEN)
def test_broken_rule_is_found(tmp_path: Path, file: str, text: str, what: str) -> None:
    path = tmp_path / f"{file}.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    (found,) = set(violations(tmp_path))
    assert found.startswith(f"{file}.py:")
    assert what in found
