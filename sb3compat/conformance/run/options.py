"""How to run the kit: the options of the functions, the command line and pytest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.findings import CheckError, nearest
from sb3compat.conformance.program.types import Reference
from sb3compat.conformance.subject.capabilities import CAPABILITIES


class OptionsError(ValueError):
    """An option names a check or a capability that does not exist, or a check cannot be used."""


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
                    raise OptionsError(f"Expected {what}, got {name!r}.{nearest(name, known)}")


def _matches(check_id: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(check_id, pattern) for pattern in patterns)
