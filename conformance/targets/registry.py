"""The registry of the environments that the kit runs on: `TARGETS`, by name."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from textwrap import dedent
from typing import Any

from sb3compat.conformance.commands.expected import expected_failures
from sb3compat.conformance.run import known, toml

EXPECTED = Path(__file__).parents[1] / "expected"
ROWS = 3
MODES = ("NEXT_STEP", "SAME_STEP", "DISABLED")
# The reset options of CartPole: the bounds of its first state.
BOUNDS = {"low": -0.01, "high": 0.01}


@dataclass(frozen=True)
class Target:
    """An environment to be checked.

    Attributes:
        name: Its name; a file of `expected/` concerns all targets whose names begin with its own.
        about: A description in one line.
        packages: The distributions that it needs, besides Gymnasium and SB3.
        source: Source that defines `make_env`, and `reference` if the single environments are
            given; it stands by itself, so that reproductions do.
        refused: Whether the adapter must refuse it.
        options: Options that its reset understands.
        capabilities: Declared capabilities.
        known: Known failures, with the reasons, besides those in `expected/`.
    """

    name: str
    about: str
    packages: tuple[str, ...]
    source: str
    refused: bool = False
    options: Mapping[str, Any] | None = None
    capabilities: Mapping[str, bool] = field(default_factory=dict)
    known: Mapping[str, str] = field(default_factory=dict)

    def expected(self) -> dict[str, str]:
        """The known failures, with the reasons."""
        found = dict(self.known)
        for path in sorted(EXPECTED.glob("*.toml")):
            if f"{self.name}-".startswith(f"{path.stem}-"):
                found |= reasons(path)
        return found

    def define(self) -> dict[str, Any]:
        """The names that the source defines: `make_env`, and perhaps `reference`."""
        namespace: dict[str, Any] = {"__name__": "conformance_target"}
        exec(compile(self.source, f"<{self.name}>", "exec"), namespace)
        return namespace


TARGETS: dict[str, Target] = {}


@cache
def reasons(path: Path) -> Mapping[str, str]:
    """The reason, with the link, for each expected failure in a file.

    What `--known-upstream` knows as well is written down there: such an entry only names the class.
    """
    tables: dict[str, Any] = toml.read(path)
    own = {check: table for check, table in tables.items() if "known" not in table}
    upstream = {
        entry.check: f"{entry.reason} ({entry.link})"
        for entry in known.read(toml.read(known.FILE))
        if tables.get(entry.check, {}).get("known") in {c.rpartition(".")[2] for c in entry.classes}
    }
    found = expected_failures(own) | upstream
    assert found.keys() == tables.keys(), f"{path}: {tables.keys() - found.keys()} is not known"
    return {check: found[check] for check in tables}


def target(
    *packages: str,
    refused: bool = False,
    single: Callable[..., Any] | None = None,
    options: Mapping[str, Any] | None = None,
    capabilities: Mapping[str, bool] | None = None,
    **choices: Iterable[str],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function that makes an environment, once for each choice of its arguments.

    The function must stand by itself: reproductions begin with its text.

    Args:
        *packages: The distributions that the environment needs.
        refused: Whether the adapter must refuse it.
        single: Makes the single environment of a row, for a reference; it gets those of the
            arguments that it has in its signature.
        options: Options that the environment's reset understands.
        capabilities: Declared capabilities.
        **choices: The values of an argument.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        library = function.__module__.rpartition(".")[2]
        for values in product(*choices.values()):
            given = dict(zip(choices, values, strict=True))
            parts = [library, function.__name__, *values]
            name = "-".join(part.lower().replace("/", "_") for part in parts)
            texts = [_text(function, "make_env", given)]
            if single is not None:
                known = inspect.signature(single).parameters
                own = {key: value for key, value in given.items() if key in known}
                texts.append(_text(single, "make_single", own))
                texts.append(f"reference = [make_single] * {ROWS}")
            about = " ".join((function.__doc__ or "").split()).rstrip(".").format(**given)
            TARGETS[name] = Target(
                name=name,
                about=about,
                packages=packages,
                source="\n\n\n".join(texts),
                refused=refused,
                options=options,
                capabilities=capabilities or {},
            )
        return function

    return register


def single(env_id: str) -> Any:
    """The single environment of each row, for `target`."""
    import gymnasium as gym

    return gym.make(env_id)


def _text(function: Callable[..., Any], name: str, given: Mapping[str, str]) -> str:
    """The text of a function under another name, with these values for its arguments."""
    node = ast.parse(dedent(inspect.getsource(function))).body[0]
    assert isinstance(node, ast.FunctionDef)
    node.name, node.decorator_list, node.returns = name, [], None
    for argument in node.args.args:
        argument.annotation = None
    node.args.defaults = [ast.Constant(given[argument.arg]) for argument in node.args.args]
    if ast.get_docstring(node) is not None:
        del node.body[0]
    return ast.unparse(node)
