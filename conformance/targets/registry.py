"""Where the environments that the kit is run on are registered: `TARGETS`, by name."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from textwrap import dedent
from typing import Any

from sb3compat.conformance.commands.expected import load_expected

EXPECTED = Path(__file__).parents[1] / "expected"
ROWS = 3


@dataclass(frozen=True)
class Target:
    """An environment to be checked.

    Attributes:
        name: What it is called here; a file of `expected/` is about all targets whose names begin
            with its own.
        about: What it is, in a line.
        packages: The distributions that it is made of, besides Gymnasium and SB3.
        source: Source that defines `make_env`, and `reference` if the single environments are
            given; it stands by itself, so that reproductions do.
        correct: Whether it is one of those that have to be clean, save what is expected.
        refused: Whether making it has to fail, as it cannot be adapted.
        options: Options that its reset understands.
        capabilities: Those that are declared.
        seconds: How long the checks may take, if not the usual time.
    """

    name: str
    about: str
    packages: tuple[str, ...]
    source: str
    correct: bool = False
    refused: bool = False
    options: Mapping[str, Any] | None = None
    capabilities: Mapping[str, bool] = field(default_factory=dict)
    seconds: float | None = None

    @property
    def by_seeds(self) -> bool:
        """Whether it is checked with many seeds: correct, of Gymnasium and SB3 alone, and quick."""
        return self.correct and not self.packages

    def expected(self) -> dict[str, str]:
        """The failures that are known, with the reasons."""
        known: dict[str, str] = {}
        for path in sorted(EXPECTED.glob("*.toml")):
            if f"{self.name}-".startswith(f"{path.stem}-"):
                known |= load_expected(path)
        return known

    def define(self) -> dict[str, Any]:
        """What the source defines: `make_env`, and perhaps `reference`."""
        namespace: dict[str, Any] = {"__name__": "conformance_target"}
        exec(compile(self.source, f"<{self.name}>", "exec"), namespace)
        return namespace


TARGETS: dict[str, Target] = {}


def target(
    *packages: str,
    correct: bool = False,
    refused: bool = False,
    single: Callable[..., Any] | None = None,
    options: Mapping[str, Any] | None = None,
    capabilities: Mapping[str, bool] | None = None,
    seconds: float | None = None,
    **choices: Iterable[str],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function that makes an environment, once for each choice of its arguments.

    The function has to stand by itself: its text is what reproductions begin with.

    Args:
        *packages: The distributions that the environment is made of.
        correct: Whether the environment has to be clean.
        refused: Whether making it has to fail.
        single: Makes the single environment of each row, if that is to be given; takes those of
            the arguments that it has.
        options: Options that the environment's reset understands.
        capabilities: Those that are declared.
        seconds: How long the checks may take, if not the usual time.
        **choices: The values that an argument takes.
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
                correct=correct,
                refused=refused,
                options=options,
                capabilities=capabilities or {},
                seconds=seconds,
            )
        return function

    return register


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
