"""Writes docs/reference/checks.md from the checks, and parts of other pages: `make docs`.

The parts, `docs/reference/_*.md`, are not kept in the repository. With `--check` it writes nothing,
and fails if checks.md is out of date.
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from sb3compat import errors
from sb3compat._arguments import KNOWLEDGE, RUN
from sb3compat.cli import _parser
from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.contract import Check
from sb3compat.conformance.findings import FAMILIES
from sb3compat.conformance.subject.capabilities import CAPABILITIES

PAGE = Path(__file__).with_name("reference") / "checks.md"

_HEAD = """\
# The checks

The checks of `sb3compat check`. This page is generated: `make docs`. See
[how to check an environment](../how-to/check-an-environment.md). Each check is tested on
environments that are wrong on purpose: [the mutation test results](kill-matrix.md).

If a check of severity *error* fails, the environment breaks the contract, and the run fails. A
*warning* is about behaviour that works but is risky; it fails the run with `--strict` only. A check
is *skipped* if the environment lacks a capability that the check needs, and *not exercised* if the
situation that it tests did not occur in any program, for example if no episode ended. *After*
names other checks: if one of them fails, this check is skipped, as its result would mean nothing.

An error is something that the documentation of the interface rules out, or a value that is not in
its space. So float64 observations in a float32 space are an error: `Box.contains` is false
for them, and Stable-Baselines3's `check_env` refuses them. float64 rewards are a warning:
`SubprocVecEnv` returns them, too.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD, *map(_family, FAMILIES), "## Capabilities"]
    parts.append("\n".join(f"- `{name}`: {text}" for name, text in CAPABILITIES.items()))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _family(family: str) -> str:
    checks = [check for check in checks_of() if check.family == family]
    parts = [f"## {FAMILIES[family]}"]
    for group in dict.fromkeys(check.group for check in checks):
        parts.append(f"### {group[0].upper()}{group[1:]}")
        parts += [_entry(check) for check in checks if check.group == group]
    return "\n\n".join(parts)


def _entry(check: Check) -> str:
    particulars = [check.severity, f"[source]({check.source})"]
    for name, values in (("needs", check.needs), ("after", check.after), ("modes", check.modes)):
        if values:
            particulars.append(f"{name} {', '.join(f'`{value}`' for value in values)}")
    parts = [f"#### `{check.id}`", check.contract, check.explanation, " · ".join(particulars)]
    return "\n\n".join(filter(None, parts))


def write_parts() -> None:
    """Write what the pages about errors and about the command line include."""
    for name, text in (
        ("_messages", messages()),
        ("_command_line", command_line()),
        ("_pytest_options", pytest_options()),
    ):
        PAGE.with_name(f"{name}.md").write_text(text, encoding="utf-8", newline="\n")


def messages() -> str:
    """The messages of the adapters by exception, with … for what is filled in.

    Each list stands between two comments, by which the page about errors includes it.
    """
    package = Path(errors.__file__).parent
    paths = [path for path in sorted(package.rglob("*.py")) if "conformance" not in path.parts]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in paths]
    everywhere: dict[str, str] = {}
    for name, text in chain.from_iterable(map(_constants, trees)):
        everywhere[name] = text if everywhere.get(name, text) == text else "…"
    found: dict[str, dict[str, None]] = {}
    for tree in trees:
        for name, message in _raised(tree, everywhere | dict(_constants(tree))):
            found.setdefault(name if hasattr(errors, name) else "Others", {})[message] = None
    parts = []
    for name, texts in sorted(found.items()):
        listed = "\n".join(f"- `` {message} ``" for message in texts)
        parts.append(f"<!-- {name} -->\n\n{listed}\n\n<!-- end of {name} -->")
    return "\n\n".join(parts) + "\n"


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The texts that a module gives a name."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            text, name = template(node.value, {}), node.targets[0].id
            if text and name.isupper():
                yield name, text


def _raised(tree: ast.Module, constants: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The exceptions and warnings that a module makes with a text, and the texts."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        known = getattr(errors, name, None) or getattr(builtins, name, None)
        if name == "warnings.warn" or (isinstance(known, type) and issubclass(known, Exception)):
            text = template(node.args[0], constants)
            if text:
                yield name, text


def template(node: ast.expr, constants: dict[str, str]) -> str:
    """The text of an expression that makes a message, with … for what is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return " ".join(node.value.split())
    if isinstance(node, ast.JoinedStr):
        return " ".join("".join(_part(part, constants) for part in node.values).split())
    return ""


def _part(node: ast.expr, constants: dict[str, str]) -> str:
    """A part of an f-string; the texts that have a name are filled in."""
    if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name):
        text = constants.get(node.value.id, "…")
        return repr(text) if text != "…" and node.conversion == ord("r") else text
    return str(node.value) if isinstance(node, ast.Constant) else "…"


def command_line() -> str:
    """The help of each command."""
    os.environ["COLUMNS"] = "90"
    _, commands = _parser()
    parts = []
    for name, command in commands.choices.items():
        parts.append(f"## sb3compat {name}\n\n```text\n{command.format_help().strip()}\n```")
    return "\n\n".join(parts) + "\n"


def pytest_options() -> str:
    """The table of pytest's options, most of which are those of `sb3compat check`."""
    rows = ["| Option | |", "|---|---|"]
    rows.append("| `--vec-env TARGET` | the environment to check (repeatable) |")
    for argument in (*RUN, *KNOWLEDGE):
        value = "" if argument.metavar is None else f" {argument.metavar}"
        rows.append(f"| `--vec-env-{argument.name}{value}` | {argument.help} |")
    return "\n".join(rows) + "\n"


def main() -> int:
    """Write the page, or compare it."""
    if "--check" not in sys.argv[1:]:
        write_parts()
        PAGE.write_text(page(), encoding="utf-8", newline="\n")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
        print(f"Expected {PAGE.name} as the checks have it, got another one. Run: make docs")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
