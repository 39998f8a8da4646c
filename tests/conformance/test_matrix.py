"""The kill matrix in the docs: it is of the checks and mutants that there are now."""

from __future__ import annotations

from functools import partial

import pytest

from conformance.matrix.__main__ import PAGE
from conformance.matrix.outcomes import examine_all, problems, up_to_date
from conformance.matrix.page import page
from conformance.matrix.record import OUTCOMES, REFERENCE, read
from conformance.matrix.sections import Section, sections
from conformance.specimens.broken.vec_env_step import DonesAsNumbers
from conformance.specimens.points import Config, Points
from conformance.specimens.registry import Specimen
from sb3compat.conformance.checks.catalogue import checks_of
from versions import stamps

FOUND = read(REFERENCE / OUTCOMES)
SECTIONS = {section.key: section for section in sections()}


def test_it_is_of_the_checks_and_environments_that_there_are() -> None:
    assert FOUND.keys() == SECTIONS.keys(), "run: make matrix"
    for key, section in SECTIONS.items():
        assert FOUND[key].keys() == {each.name for each in section.specimens}, "run: make matrix"
        for each in section.specimens:
            assert up_to_date(section, each, FOUND), "run: make matrix"


def test_the_page_shows_these_outcomes() -> None:
    text = page(list(SECTIONS.values()), FOUND)
    shown = (REFERENCE / PAGE).read_text(encoding="utf-8")
    assert stamps.bare(shown) == text, f"{PAGE}; run: make matrix ARGS=--page"


def test_mutants_are_what_they_say() -> None:
    assert problems(SECTIONS.values(), FOUND) == []


@pytest.mark.parametrize("key", SECTIONS)
def test_each_check_kills_one_that_no_other_check_kills(key: str) -> None:
    killed = {mutant.name: FOUND[key][mutant.name].killed for mutant in SECTIONS[key].mutants}
    alone = [
        mutant.fails for mutant in SECTIONS[key].mutants if mutant.fails == killed[mutant.name]
    ]
    ids = {next(iter(names)) for names in alone if len(names) == 1}
    assert ids == {check.id for check in SECTIONS[key].checks}


def specimen(cls: type, *fails: str) -> Specimen:
    made = partial(cls, Config())
    broken = bool(fails)
    return Specimen(
        "mutant", "It", "vec_env", made, cls.__module__, broken=broken, fails=frozenset(fails)
    )


@pytest.mark.parametrize(
    ("cls", "fails", "problem"),
    [
        (DonesAsNumbers, ["dones_bool_array"], None),
        (Points, [], None),
        (Points, ["dones_bool_array"], "survives dones_bool_array"),
        (DonesAsNumbers, ["rewards_float32"], "is not said to break dones_bool_array"),
        (DonesAsNumbers, [], "is correct, but is killed by dones_bool_array"),
    ],
)
def test_what_is_not_as_it_says_is_named(cls: type, fails: list[str], problem: str | None) -> None:
    names = ("dones_bool_array", "rewards_float32")
    checks = tuple(check for check in checks_of("vec_env") if check.id in names)
    one = specimen(cls, *fails)
    section = Section("key", "Title", checks, (one,))
    outcome = examine_all(section, one)
    found = problems([section], {"key": {"It": outcome}})
    assert (f"Title: It {problem}" in found) if problem else (not found)
