"""How to run the kit: the options of the functions, the command line and pytest."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to run the kit.

    Attributes:
        seed: The seed of the programs.
        max_seconds: The time for all checks together, whatever hangs; checks that would begin
            later are not exercised. None for no limit.
        programs: How many programs each check runs; None for what the pace of the environment
            allows: 25 for a quick one, 1 for a very slow one.
        only: The ids of the checks to run; empty for all. `*` and `?` stand for other characters.
        skip: The ids of checks to leave out, with the same signs.
        expected_failures: The ids of checks that are known to fail, each with the reason.
        known_upstream: Whether failures of other libraries that are known are expected, too.
        strict: Whether warnings, and expected failures that pass, fail the run.
        isolate: Whether to run the checks in a process of their own.
        make_env: Source that defines `make_env`, and `reference` if there is one, in
            reproductions; None to take it from the factory, where that can be done.
        capabilities: Capabilities that the environment has or lacks, whatever the kit would find.
        options: Options that its `reset` understands.
        reference: The factories of its single environments, one for each row.
        require_exercised: The run fails if fewer checks have a verdict.
    """

    seed: int = 0
    max_seconds: float | None = None
    programs: int | None = None
    only: Collection[str] = ()
    skip: Collection[str] = ()
    expected_failures: Mapping[str, str] = field(default_factory=dict)
    known_upstream: bool = False
    strict: bool = False
    isolate: bool = True
    make_env: str | None = None
    capabilities: Mapping[str, bool] = field(default_factory=dict)
    options: Mapping[str, Any] | None = None
    reference: Reference | None = None
    require_exercised: int = 0

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
        for name, value in vars(self).items():
            fits, wanted = _KINDS[name]
            if not fits(value):
                raise OptionsError(
                    f"Expected {name} to be {wanted}, got {name}={shown(value)} "
                    f"({type(value).__name__}). Pass such a value, or leave it out."
                )


def _is_number(value: object, least: float, kind: type = Integral) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool) and value >= least  # type: ignore[operator]


def _are_names(value: object) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | Mapping)


def _are_functions(value: object) -> bool:
    return value is None or (isinstance(value, Sequence) and all(map(callable, value)))


_FLAG: tuple[Callable[[Any], bool], str] = (lambda value: isinstance(value, bool), "True or False")
_NAMES: tuple[Callable[[Any], bool], str] = (_are_names, "a list of ids")
# What each option may be.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "seed": (lambda value: _is_number(value, -math.inf), "a whole number"),
    "max_seconds": (
        lambda value: value is None or (_is_number(value, 0, Real) and value > 0),
        "a number of seconds above 0, or None",
    ),
    "programs": (lambda value: value is None or _is_number(value, 1), "a number above 0, or None"),
    "only": _NAMES,
    "skip": _NAMES,
    "expected_failures": (
        lambda value: isinstance(value, Mapping),
        "a dict with the reason for each id",
    ),
    "known_upstream": _FLAG,
    "strict": _FLAG,
    "isolate": _FLAG,
    "make_env": (lambda value: value is None or isinstance(value, str), "source code, or None"),
    "capabilities": (
        lambda value: isinstance(value, Mapping),
        "a dict with True or False for each capability",
    ),
    "options": (lambda value: value is None or isinstance(value, Mapping), "a dict, or None"),
    "reference": (_are_functions, "a list of functions, one for each row, or None"),
    "require_exercised": (lambda value: _is_number(value, 0), "a whole number"),
}


def _matches(check_id: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(check_id, pattern) for pattern in patterns)
