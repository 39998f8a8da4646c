"""What has to be run again after a change: of the matrix, and of the tests that run mutants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from conformance.matrix.digests import Digests, changed, gone, path_of
from conformance.matrix.specimens import Section, Specimen
from conformance.mutants.registry import Mutant
from sb3compat.conformance.contract import Check

Pairs = list[tuple[Section, Specimen]]
T = TypeVar("T")

# The sample of correct environments.
_ONE_IN = 5


def stale(sections: Iterable[Section], recorded: Digests, found: Digests) -> Pairs:
    """The specimens whose outcomes are of other sources.

    All specimens of a section if one of its checks has changed: it might kill another one now.
    """
    everything = [(section, each) for section in sections for each in section.specimens]
    if changed(recorded.core, found.core) or gone(recorded.core, found.core):
        return everything
    checks = changed(recorded.checks, found.checks)
    mutants = changed(recorded.mutants, found.mutants)
    return [
        (section, each)
        for section, each in everything
        if path_of(each.module) in mutants or checks & set(map(_home, section.checks))
    ]


def to_test(
    mutants: Mapping[str, Mutant],
    checks: Iterable[Check],
    recorded: Digests,
    found: Digests,
    profile: str,
) -> list[str]:
    """The mutants that the tests run.

    All of them in the profile `nightly` and if the core has changed. Otherwise those whose own
    module has changed or the module of a check that is aimed at them, and a sample: the first
    mutant for each module of checks. `make matrix` runs every check on every mutant, and a test
    fails if it is due.

    Args:
        mutants: By name.
        checks: Those of the same interface.
        recorded: The digests in the record of the matrix.
        found: The digests of the sources as they are.
        profile: `dev`, `ci` or `nightly`.
    """
    if profile == "nightly" or changed(recorded.core, found.core):
        return list(mutants)
    homes = {check.id: _home(check) for check in checks}
    files = changed(recorded.checks, found.checks) | changed(recorded.mutants, found.mutants)
    chosen = []
    sampled: set[str] = set()
    for name, mutant in mutants.items():
        aimed = {homes[check_id] for check_id in mutant.fails}
        if aimed - sampled or files & {path_of(mutant.cls.__module__), *aimed}:
            chosen.append(name)
        sampled |= aimed
    return chosen


def correct_to_test(
    environments: Sequence[T],
    checks: Iterable[Check],
    recorded: Digests,
    found: Digests,
    profile: str,
) -> list[T]:
    """The correct environments that the tests run.

    All of them in the profile `nightly`, and if the core or one of the checks has changed, as it
    might accuse them now. Otherwise a sample. The arguments are those of `to_test`.
    """
    files = changed(recorded.checks, found.checks)
    touched = changed(recorded.core, found.core) or files & set(map(_home, checks))
    return list(environments if profile == "nightly" or touched else environments[::_ONE_IN])


def _home(check: Check) -> str:
    """The file in which a check stands."""
    return path_of(check.function.__module__)
