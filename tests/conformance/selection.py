"""Which mutants and which correct environments the tests of this run try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from conformance.matrix.digests import changed, present
from conformance.matrix.record import OUTCOMES, REFERENCE, read
from conformance.matrix.selection import correct_to_test, to_test
from conformance.mutants.registry import Mutant
from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.findings import Family
from tests.profiles import profile, spread

T = TypeVar("T")

# A change to what all outcomes depend on is for `make matrix`; here, it is tried on a part.
_MOST = 30


def chosen(mutants: Mapping[str, Mutant], family: Family) -> list[str]:
    """The names of those whose sources have changed since `make matrix`, and a sample."""
    recorded, found = read(REFERENCE / OUTCOMES).digests, present()
    names = to_test(mutants, checks_of(family), recorded, found, profile())
    return spread(names, _MOST) if changed(recorded.core, found.core) else names


def correct(environments: Sequence[T], family: Family) -> list[T]:
    """A sample of these, or more of them if a check has changed since `make matrix`."""
    recorded = read(REFERENCE / OUTCOMES).digests
    found = correct_to_test(environments, checks_of(family), recorded, present(), profile())
    return spread(found, _MOST // 5)
