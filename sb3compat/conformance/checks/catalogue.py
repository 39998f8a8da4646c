"""All checks, in the order of the docs."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from sb3compat.conformance.contract import Check, registered
from sb3compat.conformance.findings import Family, nearest

# The modules of each folder, in the order of the docs.
ORDER: dict[Family, tuple[str, ...]] = {
    "vec_env": (
        "basics", "step", "episodes", "rows", "seeding", "ownership", "access", "sb3",
    ),
    "vector_env": (
        "basics", "infos", "seeding", "episodes", "next_step", "same_step", "disabled", "masked",
        "rows", "errors", "access",
    ),
}  # fmt: skip


@cache
def _all() -> tuple[Check, ...]:
    modules = [
        import_module(f"{__package__}.{family}.{name}")
        for family, names in ORDER.items()
        for name in names
    ]
    return tuple(check for module in modules for check in registered(module.__name__))


def checks_of(family: Family | None = None, mode: str | None = None) -> list[Check]:
    """All checks, or those for one family and one autoreset mode, in the order of the docs."""
    return [
        check
        for check in _all()
        if family in (None, check.family) and (mode is None or mode in (check.modes or (mode,)))
    ]


def find_checks(check_id: str) -> list[Check]:
    """The checks with this id, of both families.

    Raises:
        ValueError: If no check has this id; the message names the nearest id.
    """
    found = [check for check in _all() if check.id == check_id]
    if found:
        return found
    hint = nearest(check_id, [check.id for check in _all()]) or " `sb3compat list` shows them."
    raise ValueError(f"Expected the id of a check, got {check_id!r}.{hint}")


def find_check(family: str, check_id: str) -> Check:
    """The check of one family with this id.

    Raises:
        ValueError: If the family has no such check; the message names the nearest id.
    """
    for check in find_checks(check_id):
        if check.family == family:
            return check
    raise ValueError(f"Expected the id of a check of {family}, got {check_id!r}.")
