"""The kill matrix as a page."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

from conformance.matrix.outcomes import (
    BLOCKED,
    IDLE,
    LOOKS,
    LOOKS_AT_AIMED,
    LOOKS_AT_CORRECT,
    PARTLY,
    PASSED,
    PROGRAMS,
    SKIPPED,
    Outcome,
    Outcomes,
)
from conformance.matrix.sections import Section
from conformance.specimens.registry import Specimen
from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.contract import Check

Anchors = dict[tuple[str, str], str]

_HEAD = """\
# Mutation test results

A check is useful only if it finds mistakes. So every check is run on *mutants*. A mutant is a
correct environment with one small change that breaks the contract; its class name describes the
change. A check *kills* a mutant if it fails on it. Each check has mutants that are *aimed* at it,
at least one in each autoreset mode that it applies to. The check must kill these mutants. It
may kill another mutant only if the source of that mutant names the check, as it would otherwise
report mistakes that an environment does not have. For the same reason it must pass on correct
environments.

`make matrix` runs all checks and writes this page. The run fails if a mutant survives a check that
is aimed at it, if a check kills a mutant whose source does not name the check, or if a check fails
on a correct environment. [CONTRIBUTING.md](../../CONTRIBUTING.md#mutants) describes how to add a
mutant, and [the checks](checks.md) what each check demands.

Each check runs {few} short programs on a mutant. A check that is aimed at the mutant continues
until it kills the mutant, up to {many} programs; a check that trains runs {least}. On a correct
environment each check runs {some} programs. In a user's run it is up to 25. For most mutants of a
VecEnv the kit is also given the single environments and options that they understand; for a mutant
of a VectorEnv only where the change concerns them. Then all checks run once more *by default*: the
kit is given nothing but the environment. The run fails if no check kills a mutant by default,
unless its source says why none can.
"""

_MARKS = """\
In the tables, a mutant in plain type is aimed at the check. The check also kills the mutants in
*italics*, which are aimed at other checks. +2 means that two other checks kill the mutant, too. †
means that the check kills it only if single environments or options are given, not by default.
Where several checks kill a mutant, the comments in its source say why. In each section, each check
kills at least one mutant that no other check kills.
"""


def page(sections: list[Section], outcomes: Outcomes) -> str:
    """The whole page."""
    anchors = _anchors()
    head = _HEAD.format(
        few=LOOKS * PROGRAMS,
        many=LOOKS_AT_AIMED * PROGRAMS,
        least=PROGRAMS,
        some=LOOKS_AT_CORRECT * PROGRAMS,
    )
    parts = [head, _summary(sections, outcomes), _MARKS]
    for section in sections:
        parts += _section(section, outcomes[section.key], anchors)
    modules = {specimen.module for section in sections for specimen in section.specimens}
    links = [f"[{_label(name)}]: ../../{name.replace('.', '/')}.py" for name in sorted(modules)]
    return "\n\n".join(part.strip() for part in [*parts, "\n".join(links)] if part) + "\n"


def _summary(sections: list[Section], outcomes: Outcomes) -> str:
    lines = [
        "| | Checks | Mutants | Meant kills | Missed | Missed by default | Kills besides "
        "| Correct envs | Killed |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for section in sections:
        found = outcomes[section.key]
        meant = sum(len(mutant.fails & found[mutant.name].killed) for mutant in section.mutants)
        survived = sum(len(mutant.fails - found[mutant.name].killed) for mutant in section.mutants)
        besides = sum(len(found[mutant.name].killed - mutant.fails) for mutant in section.mutants)
        unseen = sum(not found[mutant.name].by_default for mutant in section.mutants)
        killed = sum(bool(found[specimen.name].killed) for specimen in section.correct)
        numbers = (
            len(section.checks), len(section.mutants), meant, survived, unseen, besides,
            len(section.correct), killed,
        )  # fmt: skip
        link = f"[{section.title}](#{_anchor(section.title)})"
        lines.append(f"| {link} | {' | '.join(map(str, numbers))} |")
    return "\n".join(lines)


def _anchor(title: str) -> str:
    """As GitHub makes it from a heading."""
    return "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c in "-_")


def _anchors() -> Anchors:
    """Where the checks stand in their page; of equal headings the later ones get numbers."""
    seen: Counter[str] = Counter()
    anchors: Anchors = {}
    for check in checks_of():
        anchors[check.family, check.id] = (
            f"{check.id}-{seen[check.id]}" if seen[check.id] else check.id
        )
        seen[check.id] += 1
    return anchors


def _section(section: Section, outcomes: dict[str, Outcome], anchors: Anchors) -> list[str]:
    return [
        f"## {section.title}",
        _checks(section, outcomes, anchors),
        _unaided(section, outcomes),
        _correct(section, outcomes),
    ]


def _checks(section: Section, outcomes: dict[str, Outcome], anchors: Anchors) -> str:
    lines = ["| Check | Mutants that it kills |", "|---|---|"]
    for group, checks in groupby(section.checks, key=lambda check: check.group):
        lines.append(f"| **{group[0].upper()}{group[1:]}** | |")
        for check in checks:
            link = f"[`{check.id}`](checks.md#{anchors[check.family, check.id]})"
            lines.append(f"| {link} | {', '.join(_killed_by(check, section, outcomes))} |")
    return "\n".join(lines)


def _killed_by(check: Check, section: Section, outcomes: dict[str, Outcome]) -> list[str]:
    """Those that are aimed at it first."""
    aimed, besides = [], []
    for mutant in section.mutants:
        outcome = outcomes[mutant.name]
        text = _link(mutant)
        if check.id not in outcome.killed:
            continue
        if outcome.unaided is not None and check.id not in outcome.unaided:
            text += " †"
        others = len(outcome.killed) - 1
        text += f" +{others}" if others else ""
        if check.id in mutant.fails:
            aimed.append(text)
        else:
            besides.append(f"*{text}*")
    return aimed + besides


def _unaided(section: Section, outcomes: dict[str, Outcome]) -> str:
    lines = []
    for mutant in section.mutants:
        if not outcomes[mutant.name].by_default:
            aimed = ", ".join(f"`{name}`" for name in sorted(mutant.fails))
            lines.append(f"| {_link(mutant)} | {aimed} | {mutant.untold} |")
    if not lines:
        return ""
    head = "| Mutant | Aimed at | Why it cannot be told |\n|---|---|---|\n"
    return f"Mutants that are missed by default:\n\n{head}" + "\n".join(lines)


def _correct(section: Section, outcomes: dict[str, Outcome]) -> str:
    lines = [
        "The correct environments, by configuration:",
        "",
        "| Environment | Passed | Partly exercised | Not exercised | Skipped | Killed by |",
        "|---|--:|--:|--:|--:|---|",
    ]
    for specimen in section.correct:
        outcome = outcomes[specimen.name]
        count = Counter(outcome.words.values())
        killed = ", ".join(f"**`{name}`**" for name in sorted(outcome.killed)) or "nothing"
        if outcome.unaided:
            killed += f"; by default {', '.join(sorted(outcome.unaided))}"
        numbers = " | ".join(str(count[word]) for word in (PASSED, PARTLY, IDLE, SKIPPED))
        assert not count[BLOCKED] or outcome.killed
        lines.append(f"| {_link(specimen, code=True)} | {numbers} | {killed} |")
    return "\n".join(lines)


def _link(specimen: Specimen, code: bool = False) -> str:
    name = f"`{specimen.name}`" if code else specimen.name
    return f"[{name}][{_label(specimen.module)}]"


def _label(module: str) -> str:
    return module.rpartition(".")[2]
