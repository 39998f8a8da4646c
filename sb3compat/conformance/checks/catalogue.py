"""All checks, in the order of the docs; then those of others.

Others register theirs with `sb3compat.conformance.check`, in a module that an entry point of the
group `sb3compat.checks` names, or in one that they import themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType

from sb3compat.conformance.checks.tools.sources import with_lines
from sb3compat.conformance.contract import Check, registered
from sb3compat.conformance.findings import CheckError, Family, said_by
from sb3compat.errors import nearest

ENTRY_POINTS = "sb3compat.checks"

# The modules of each folder, in the order of the docs.
ORDER: dict[Family, tuple[str, ...]] = {
    "vec_env": (
        "basics", "step", "episodes", "truncation", "infos", "rows", "seeding", "options",
        "ownership", "access", "rendering", "life", "sb3",
    ),
    "vector_env": (
        "basics", "infos", "seeding", "options", "episodes", "next_step", "same_step", "disabled",
        "masked", "rows", "errors", "ownership", "access",
    ),
}  # fmt: skip


def _all() -> tuple[Check, ...]:
    """The checks of the kit, and those of others that are registered by now."""
    ours = _ours()
    _load_entry_points()
    theirs = [check for check in registered() if not _is_ours(check)]
    for check in theirs:
        ids = [other.id for other in (*ours, *theirs) if other.family == check.family]
        for name in check.after:
            if name not in ids:
                raise CheckError(
                    f"Expected {check.function.__module__}.{check.id} to come after checks of "
                    f"{check.family}, got after={name!r}.{nearest(name, ids)}"
                )
    return (*ours, *theirs)


@cache
def _load_entry_points() -> None:
    for entry in entry_points(group=ENTRY_POINTS):
        _load(entry)


def _load(entry: EntryPoint) -> None:
    try:
        entry.load()
    except Exception as error:
        owner = entry.dist.name if entry.dist else "an unknown distribution"
        raise CheckError(
            f"Expected the checks of {owner} to be importable as {entry.value}, got "
            f"{said_by(error).removesuffix('.')}. Mend it, or uninstall it."
        ) from error


@cache
def _ours() -> tuple[Check, ...]:
    return tuple(
        with_lines(check)
        for family, names in ORDER.items()
        for name in names
        for check in _of(import_module(f"{__package__}.{family}.{name}"), family)
    )


def _of(module: ModuleType, family: Family) -> Iterator[Check]:
    """The checks that a module registers; the functions of some are those of both interfaces."""
    known = {check.id: check for check in registered() if check.family == family}
    for name, value in vars(module).items():
        if name in known and known[name].function is value:
            yield known[name]


def checks_of(family: Family | None = None, mode: str | None = None) -> list[Check]:
    """All checks, or those for one family and one autoreset mode, in the order of the docs.

    Raises:
        CheckError: If a check that others have written cannot be used.
    """
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


def is_importable(check: Check) -> bool:
    """Whether another process finds the function of a check by its name."""
    return _is_ours(check) or check.function.__module__ in _installed()


def _is_ours(check: Check) -> bool:
    return check.function.__module__.startswith(f"{__package__}.")


@cache
def _installed() -> set[str]:
    return {entry.module for entry in entry_points(group=ENTRY_POINTS)}
