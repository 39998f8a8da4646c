"""What the checks are run on: the mutants of both registries, and what is correct."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from conformance.specimens.broken import vec_env, vector_env
from conformance.specimens.forms import CONFIGS, FORMS, WITH_REFERENCE
from conformance.specimens.points import OPTIONS, Config, Points
from conformance.specimens.points import reference as points_of
from conformance.specimens.registry import Mutant
from conformance.specimens.rows_env import MODES, Form, RowsEnv
from conformance.specimens.rows_env import reference as rows_of
from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.contract import Check
from sb3compat.conformance.findings import Family


@dataclass(frozen=True)
class Specimen:
    """An environment that the checks are run on.

    Attributes:
        name: What it is called, once in its section.
        factory: Makes it.
        given: What the user tells the kit.
        module: Where its class stands.
        fails: The checks that it is aimed at; none if it is correct.
        may_fail: Others that it may fail.
        untold: Why nothing tells it from a correct one by default; empty where the kit finds it.
    """

    name: str
    factory: Callable[[], Any]
    given: dict[str, Any]
    module: str
    fails: frozenset[str] = frozenset()
    may_fail: frozenset[str] = frozenset()
    untold: str = ""

    @property
    def is_mutant(self) -> bool:
        return bool(self.fails)


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
        mutants = [specimen for specimen in self.specimens if specimen.is_mutant]
        return sorted(mutants, key=lambda mutant: sorted(map(order.index, mutant.fails)))

    @property
    def correct(self) -> list[Specimen]:
        return [specimen for specimen in self.specimens if not specimen.is_mutant]


def sections() -> list[Section]:
    """All of it."""
    mutants = tuple(_mutant(name, m) for name, m in vec_env.MUTANTS.items())
    correct = tuple(map(_points, CONFIGS))
    found = [_section("vec-env", "SB3 VecEnv", "vec_env", None, (*mutants, *correct))]
    titles = ("NEXT_STEP", "SAME_STEP", "DISABLED")
    keys = ("next-step", "same-step", "disabled")
    for key, title, mode in zip(keys, titles, MODES, strict=True):
        mutants = tuple(
            _mutant(name.removesuffix(f"-{mode}"), m)
            for name, m in vector_env.MUTANTS.items()
            if m.mode == mode
        )
        title = f"Gymnasium VectorEnv, {title}"
        found.append(_section(key, title, "vector_env", mode, (*mutants, *_rows(mode))))
    return found


def _section(
    key: str, title: str, family: Family, mode: str | None, specimens: tuple[Specimen, ...]
) -> Section:
    checks = checks_of(family, mode)
    groups = list(dict.fromkeys(check.group for check in checks))
    ordered = sorted(checks, key=lambda check: groups.index(check.group))
    return Section(key, title, tuple(ordered), specimens)


def _mutant(name: str, mutant: Mutant) -> Specimen:
    return Specimen(
        name,
        mutant.factory,
        mutant.given,
        mutant.cls.__module__,
        mutant.fails,
        mutant.may_fail,
        mutant.untold,
    )


def _points(config: Config) -> Specimen:
    options = OPTIONS if config.info else None
    given = {"reference": points_of(config), "options": options}
    return Specimen(_named(config), partial(Points, config), given, Points.__module__)


def _named(config: Config) -> str:
    """The call that makes it, with what is not as usual."""
    usual = Config()
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    unusual = [f"{k}={v!r}" for k, v in values.items() if v != getattr(usual, k)]
    return f"Config({', '.join(unusual)})"


def _rows(mode: str) -> Iterator[Specimen]:
    for name, arguments in FORMS.items():
        form = Form(mode=mode, **arguments)
        given: dict[str, Any] = {}
        if name in WITH_REFERENCE:
            given = {"reference": rows_of(form), "options": {"offset": 100}}
        yield Specimen(name, partial(RowsEnv, form), given, RowsEnv.__module__)
