"""Which mutants the tests of this run try."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.matrix.digests import present
from conformance.matrix.record import OUTCOMES, REFERENCE, read
from conformance.matrix.selection import to_test
from conformance.mutants.registry import Mutant
from sb3compat.conformance.contract import Family, checks_of
from tests.profiles import profile


def chosen(mutants: Mapping[str, Mutant], family: Family) -> list[str]:
    """The names of those whose sources have changed since `make matrix`, and a sample."""
    recorded = read(REFERENCE / OUTCOMES).digests
    return to_test(mutants, checks_of(family), recorded, present(), profile())
