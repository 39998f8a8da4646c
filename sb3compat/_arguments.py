"""The options of the conformance kit, which the command line, pytest and pyproject.toml share.

Every pytest imports this where sb3compat is installed, so it imports neither NumPy nor the kit.
"""

from __future__ import annotations

import argparse
import json
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Kind = Literal["flag", "list", "text", "path", "object", "integer", "count", "seconds"]

# A copy, so that --help need not import the kit; a test compares.
AUTORESET_MODES = ("NextStep", "SameStep", "Disabled")
_NAMES_OF_MODES = {"NEXT_STEP": "NextStep", "SAME_STEP": "SameStep", "DISABLED": "Disabled"}


@dataclass(frozen=True)
class Argument:
    """An option.

    Attributes:
        name: Its name, without dashes in front.
        kind: The type of its value; a `list` may be given several times, an `object` is JSON.
        help: Its help text.
        metavar: The placeholder for its value in the help.
        choices: The allowed values; empty if any value of the type is allowed.
        aliases: Alternative names for some choices.
    """

    name: str
    kind: Kind
    help: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)

    @property
    def dest(self) -> str:
        """The name in Python."""
        return self.name.replace("-", "_")

    def add(self, add: Callable[..., object], prefix: str = "--") -> None:
        """Add it to a parser, by the parser's own function."""
        how: dict[str, Any] = {"help": self.help}
        if self.kind == "flag":
            how["action"] = "store_true"
        elif self.kind == "list":
            how |= {"action": "append", "default": [], "metavar": self.metavar}
        else:
            how |= {"type": _KINDS[self.kind][1], "metavar": self.metavar}
            how |= {"choices": self.choices, "type": self._chosen} if self.choices else {}
        add(prefix + self.name, **how)

    def _chosen(self, text: str) -> str:
        """The choice that a word stands for.

        Raises:
            ArgumentTypeError: If there is no such choice; the message names the nearest.
        """
        chosen = self.aliases.get(text, text)
        if chosen not in self.choices:
            from sb3compat.errors import nearest

            wanted = ", ".join(self.choices)
            hint = nearest(text, self.choices, "Pass one of these.")
            raise argparse.ArgumentTypeError(f"Expected one of {wanted}, got {text!r}.{hint}")
        return chosen

    def value(self, written: object, folder: Path) -> Any:
        """A value from TOML, converted as by the command line.

        For an option that takes a file, the tables of the file are accepted as well.

        Raises:
            SettingsError: If it has the wrong type, or is not one of the choices.
        """
        if isinstance(written, str):
            written = self.aliases.get(written, written)
        words, _, fits = _KINDS[self.kind]
        if not fits(written) or (self.choices and written not in self.choices):
            wanted = ", ".join(map(repr, self.choices)) or words
            from sb3compat.errors import nearest

            hint = nearest(written, self.choices, "Write such a value, or take it out.")
            raise SettingsError(f"Expected {wanted}, got {self.name} = {written!r}.{hint}")
        return folder / written if self.kind == "path" and isinstance(written, str) else written


class SettingsError(ValueError):
    """The table `[tool.sb3compat]` makes no sense; the message says why."""


def positive(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """A type of an option: a number above 0."""

    def positive(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if not value > 0:
            raise argparse.ArgumentTypeError(
                f"Expected a number above 0, got {text!r}. Pass such a number."
            )
        return value

    return positive


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(
            f"Expected a JSON object such as '{{\"key\": 1}}', got {text!r}. Mind the quotes: the "
            "shell takes the outer ones."
        )
    return value


def _are_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


# Each kind in words, how argparse reads it, and whether a value from TOML is one. A bool is an int.
_KINDS: dict[Kind, tuple[str, Callable[[str], Any] | None, Callable[[Any], bool]]] = {
    "flag": ("true or false", None, lambda x: isinstance(x, bool)),
    "list": ("a list of strings", None, _are_strings),
    "text": ("a string", str, lambda x: isinstance(x, str)),
    "path": ("the path of a file", Path, lambda x: isinstance(x, str | dict)),
    "object": ("a table", _json_object, lambda x: isinstance(x, dict)),
    "integer": ("a whole number", int, lambda x: type(x) is int),
    "count": ("a whole number above 0", positive(int), lambda x: type(x) is int and x > 0),
    "seconds": ("a number above 0", positive(float), lambda x: type(x) in (int, float) and x > 0),
}

RUN = (
    Argument("seed", "integer", "the seed of the random programs (default: 0)", "N"),
    Argument(
        "max-seconds", "seconds",
        "how long all checks may take together; even if a call hangs, the run ends within ten "
        "seconds after that (default: no limit)", "S",
    ),
    Argument(
        "programs", "count",
        "how many programs each check runs (default: 25, or fewer for a slow environment); with "
        "the same seed and the same number the report is the same", "N",
    ),
    Argument(
        "require-exercised", "count",
        "fail if fewer than N checks were exercised: neither skipped nor not exercised", "N"
    ),
    Argument(
        "only", "list",
        "run this check (repeatable); * and ? stand for other characters: 'terminal_*'", "ID",
    ),
    Argument(
        "skip", "list",
        "leave this check out (repeatable); * and ? as for --only; the report lists it", "ID",
    ),
    Argument(
        "expected-failures", "path",
        "a TOML file with known failures: [id], reason = …, link = …", "FILE",
    ),
    Argument(
        "known-upstream", "flag",
        "expect the known failures of Gymnasium, Stable-Baselines3, EnvPool and ale-py, by class "
        "and version",
    ),
    Argument(
        "strict", "flag", "let warnings, and expected failures that pass, fail the run"
    ),
    Argument(
        "no-isolate", "flag",
        "run the checks in this process, for a debugger; a hang or a crash ends the run",
    ),
)  # fmt: skip
KNOWLEDGE = (
    Argument(
        "capability", "list",
        "the environment has this capability, whatever the kit finds (repeatable); "
        "`sb3compat list` names the capabilities", "NAME",
    ),
    Argument(
        "no-capability", "list",
        "the environment lacks this capability: skip the checks that need it (repeatable)", "NAME",
    ),
    Argument(
        "reset-options", "object",
        "options for reset; without this, the checks of options pass an option of their own, or "
        "are skipped", "JSON",
    ),
    Argument(
        "reference", "text",
        "a list of functions that make the single environments, one for each row: the kit then "
        "steps them one by one and compares every value", "MODULE:NAME",
    ),
)  # fmt: skip
MAKING = (
    Argument("num-envs", "count", "the number of rows (default: 3)", "N"),
    Argument(
        "vectorization-mode", "text",
        "as for make_vec_env (default: that of gymnasium.make_vec); native is Gymnasium's "
        "vector_entry_point",
        choices=("sync", "async", "native"), aliases={"vector_entry_point": "native"},
    ),
    Argument(
        "autoreset-mode", "text", "the autoreset mode of a sync or async environment",
        choices=AUTORESET_MODES, aliases=_NAMES_OF_MODES,
    ),
    Argument(
        "vec-env", "text",
        "make Stable-Baselines3's DummyVecEnv or SubprocVecEnv, not a VectorEnv",
        choices=("dummy", "subproc"),
    ),
    Argument(
        "start-method", "text",
        "how --vec-env subproc, or --vectorization-mode async, starts its workers",
        choices=("fork", "spawn", "forkserver"),
    ),
    Argument(
        "env-kwargs", "object",
        """arguments for the environment: '{"max_episode_steps": 20}'""", "JSON",
    ),
)  # fmt: skip
_KNOWN = {argument.name: argument for argument in (*RUN, *KNOWLEDGE, *MAKING)}


@dataclass(frozen=True)
class Settings:
    """The table `[tool.sb3compat]` of the nearest pyproject.toml.

    Attributes:
        file: The pyproject.toml; None if no file has such a table.
        common: The settings for every environment.
        targets: The settings for single environments, by target.
    """

    file: Path | None
    common: Mapping[str, object]
    targets: Mapping[str, Mapping[str, object]]

    def fill(self, given: Namespace) -> Namespace:
        """The options, with the settings for those that were not given.

        Args:
            given: The options of the command line or of pytest; without a `target`, the only target
                of the settings is used.

        Raises:
            SettingsError: If a setting makes no sense, or if no target is known.
        """
        target = given.target
        if target is None:
            if len(self.targets) != 1:
                known = ", ".join(self.targets) or "none"
                raise SettingsError(
                    'Expected a TARGET, or exactly one table [tool.sb3compat.targets."…"] in '
                    f"pyproject.toml, got no TARGET. Tables in pyproject.toml: {known}. Name a "
                    "TARGET, such as my_module:make_env."
                )
            (target,) = self.targets
        merged = {**vars(given), "target": target}
        folder = self.file.parent if self.file else Path()
        for name, written in {**self.common, **self.targets.get(target, {})}.items():
            argument = self._argument(name)
            if hasattr(given, argument.dest) and not _is_given(given, argument):
                merged[argument.dest] = argument.value(written, folder)
        for name, other in (("capability", "no_capability"), ("no_capability", "capability")):
            if not getattr(given, name):  # that is a setting, which the command line overrules
                said = getattr(given, other)
                merged[name] = [each for each in merged[name] if each not in said]
        return Namespace(**merged)

    def _argument(self, name: str) -> Argument:
        if name not in _KNOWN:
            from sb3compat.errors import nearest

            hint = nearest(name.replace("_", "-"), _KNOWN, "Take it out.")
            raise SettingsError(
                f"Expected an option of `sb3compat check` in [tool.sb3compat] of {self.file}, got "
                f"{name!r}.{hint}"
            )
        return _KNOWN[name]


def _is_given(given: Namespace, argument: Argument) -> bool:
    value = getattr(given, argument.dest)
    return value is not None and value is not False and value != []


def settings(folder: Path) -> Settings:
    """The settings in the nearest pyproject.toml that has some, from this folder upwards.

    Raises:
        SettingsError: If the file is no TOML, or the table has another form.
    """
    for parent in (folder, *folder.parents):
        file = parent / "pyproject.toml"
        if file.is_file() and "sb3compat" in file.read_text(encoding="utf-8", errors="replace"):
            found = _settings(file)
            if found is not None:
                return found
    return Settings(None, {}, {})


def _settings(file: Path) -> Settings | None:
    from sb3compat.conformance.run import toml

    try:
        tool = toml.read(file).get("tool", {})
    except ModuleNotFoundError as error:
        raise SettingsError(str(error)) from None
    except ValueError as error:
        raise SettingsError(
            f"Expected a TOML file, got {str(file)!r}: {error}. Fix its syntax."
        ) from None
    table = tool.get("sb3compat") if isinstance(tool, dict) else None
    if table is None:
        return None
    targets = table.get("targets", {}) if isinstance(table, dict) else None
    if not isinstance(targets, dict) or not all(isinstance(x, dict) for x in targets.values()):
        raise SettingsError(
            f'Expected [tool.sb3compat] and [tool.sb3compat.targets."TARGET"] to be tables in '
            f"{file}, got {table!r}. Write them as tables."
        )
    return Settings(file, {k: v for k, v in table.items() if k != "targets"}, targets)
