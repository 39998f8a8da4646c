"""How to run the kit: the options of the functions, the command line and pytest."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from numbers import Integral, Real
from typing import Any

from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.findings import CheckError
from sb3compat.conformance.program.types import Reference
from sb3compat.conformance.subject.capabilities import CAPABILITIES
from sb3compat.errors import nearest, shown


class OptionsError(ValueError):
    """An option has a wrong value, or names a check or a capability that does not exist."""

    __module__ = "sb3compat.conformance"  # where users import it from


def _kind(wanted: str, fits: Callable[[Any], bool]) -> dict[str, Any]:
    """What the value of an option may be, besides its default: in words, and as a function."""
    return {"wanted": wanted, "fits": fits}


def _is_number(value: object, least: float, kind: type = Integral) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool) and value >= least  # type: ignore[operator]


_FLAG = _kind("True or False", lambda value: isinstance(value, bool))
_NAMES = _kind(
    "a list of ids",
    lambda value: isinstance(value, Collection) and not isinstance(value, str | Mapping),
)
_SEED = _kind("a whole number", lambda value: _is_number(value, -math.inf))
_LEAST = _kind("a whole number", lambda value: _is_number(value, 0))
_COUNT = _kind("a number above 0, or None", lambda value: _is_number(value, 1))
_SECONDS = _kind(
    "a number of seconds above 0, or None",
    lambda value: _is_number(value, 0, Real) and value > 0,
)
_SOURCE = _kind("source code, or None", lambda value: isinstance(value, str))
_REASONS = _kind("a dict with the reason for each id", lambda value: isinstance(value, Mapping))
_CAPABILITIES = _kind(
    "a dict with True or False for each capability", lambda value: isinstance(value, Mapping)
)
_DICT = _kind("a dict, or None", lambda value: isinstance(value, Mapping))
_FUNCTIONS = _kind(
    "a list of functions, one for each row, or None",
    lambda value: isinstance(value, Sequence) and all(map(callable, value)),
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to run the kit; `check_vec_env` says what each option means.

    A new option is a field here, a keyword of `check_vec_env`, and an `Argument` of the same name
    in `sb3compat._arguments`, for the command line, pytest and pyproject.toml.
    """

    seed: int = field(default=0, metadata=_SEED)
    max_seconds: float | None = field(default=None, metadata=_SECONDS)
    programs: int | None = field(default=None, metadata=_COUNT)
    only: Collection[str] = field(default=(), metadata=_NAMES)
    skip: Collection[str] = field(default=(), metadata=_NAMES)
    expected_failures: Mapping[str, str] = field(default_factory=dict, metadata=_REASONS)
    known_upstream: bool = field(default=False, metadata=_FLAG)
    strict: bool = field(default=False, metadata=_FLAG)
    isolate: bool = field(default=True, metadata=_FLAG)
    make_env: str | None = field(default=None, metadata=_SOURCE)
    capabilities: Mapping[str, bool] = field(default_factory=dict, metadata=_CAPABILITIES)
    options: Mapping[str, Any] | None = field(default=None, metadata=_DICT)
    reference: Reference | None = field(default=None, metadata=_FUNCTIONS)
    require_exercised: int = field(default=0, metadata=_LEAST)

    def leaves_out(self, check_id: str) -> bool:
        """Whether a check is not to run, not even because others come after it."""
        return _matches(check_id, self.skip)

    def asks_for(self, check_id: str) -> bool:
        """Whether the result of a check is wanted."""
        wanted = not self.only or _matches(check_id, self.only)
        return wanted and not self.leaves_out(check_id)

    def check_names(self) -> None:
        """Refuse unknown names: a misspelt one would let a failure through.

        Raises:
            OptionsError: If an id or a capability does not exist; the message names the nearest.
        """
        self._check_types()
        try:
            ids = {check.id for check in checks_of()}
        except CheckError as error:
            raise OptionsError(str(error)) from error
        chosen = {
            name for name in (*self.only, *self.skip) if any(_matches(i, [name]) for i in ids)
        }
        for what, known, given in (
            ("the id of a check in `only`", ids | chosen, self.only),
            ("the id of a check in `skip`", ids | chosen, self.skip),
            ("the id of a check in `expected_failures`", ids, self.expected_failures),
            ("a capability", set(CAPABILITIES), self.capabilities),
        ):
            for name in given:
                if name not in known:
                    hint = nearest(name, known, "`sb3compat list` shows them.")
                    raise OptionsError(f"Expected {what}, got {name!r}.{hint}")

    def _check_types(self) -> None:
        """Refuse values of the wrong type: a string would count as the list of its letters.

        Raises:
            OptionsError: If there is one.
        """
        for option in fields(self):
            name, value = option.name, getattr(self, option.name)
            if value is not option.default and not option.metadata["fits"](value):
                one_id = option.metadata["wanted"] == _NAMES["wanted"] and isinstance(value, str)
                what_to_do = f"Pass {name}=[{value!r}]" if one_id else "Pass such a value"
                raise OptionsError(
                    f"Expected {name} to be {option.metadata['wanted']}, got {name}={shown(value)} "
                    f"({type(value).__name__}). {what_to_do}, or leave it out."
                )


def _matches(check_id: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(check_id, pattern) for pattern in patterns)
