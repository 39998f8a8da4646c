"""A single check, by its interface and its name."""

from __future__ import annotations

from sb3compat.conformance.checks.catalogue import find_checks
from sb3compat.conformance.contract import Check


def find_check(family: str, check_id: str) -> Check:
    """The check of one family with this id."""
    (found,) = (check for check in find_checks(check_id) if check.family == family)
    return found
