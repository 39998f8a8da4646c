"""What the checks are run on, by interface and mode: the mutants, and what is correct."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.specimens import every
from conformance.specimens.registry import Specimen, specimens
from conformance.specimens.rows_env import MODES
from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.contract import Check
from sb3compat.conformance.findings import Family

assert every.MODULES, "they have to be imported before `specimens` is asked"


@dataclass(frozen=True)
class Section:
    """One interface, and for a `VectorEnv` one autoreset mode; its checks are in groups."""

    key: str
    title: str
    checks: tuple[Check, ...]
    specimens: tuple[Specimen, ...]

    @property
    def mutants(self) -> list[Specimen]:
        """In the order of the checks that they are aimed at."""
        order = [check.id for check in self.checks]
        mutants = [specimen for specimen in self.specimens if specimen.broken]
        return sorted(mutants, key=lambda mutant: sorted(map(order.index, mutant.fails)))

    @property
    def correct(self) -> list[Specimen]:
        return [specimen for specimen in self.specimens if not specimen.broken]


def sections() -> list[Section]:
    """All of it."""
    found = [_section("vec-env", "SB3 VecEnv", "vec_env", None)]
    titles = ("NEXT_STEP", "SAME_STEP", "DISABLED")
    keys = ("next-step", "same-step", "disabled")
    for key, title, mode in zip(keys, titles, MODES, strict=True):
        found.append(_section(key, f"Gymnasium VectorEnv, {title}", "vector_env", mode))
    return found


def _section(key: str, title: str, family: Family, mode: str | None) -> Section:
    checks = checks_of(family, mode)
    groups = list(dict.fromkeys(check.group for check in checks))
    ordered = sorted(checks, key=lambda check: groups.index(check.group))
    modules = [module.__name__ for module in every.MODULES]
    # Whichever of them was imported first.
    mutants = sorted(
        specimens("mutant", family, mode), key=lambda mutant: modules.index(mutant.module)
    )
    found = (*mutants, *specimens("form", family, mode))
    return Section(key, title, tuple(ordered), found)
