"""The drawing of one failure: the finding, and the steps before it, with a line for each row."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sb3compat.conformance.findings import Finding
from sb3compat.conformance.run.report import Moment, Result

# The part of a moment that an expression is about.
_PART = {
    "obs": "obs",
    "rewards": "reward",
    "dones": "flags",
    "terminations": "flags",
    "truncations": "flags",
    "infos": "infos",
    "actions": "action",
}


@dataclass(frozen=True)
class Found:
    """The result and the expected result.

    Attributes:
        got: The expression with its value.
        place: The step and the row.
        expected: What should have come.
        more: Further parts of the message, for example that it does not happen every time.
    """

    got: str
    place: str
    expected: str
    more: str


@dataclass(frozen=True)
class Part:
    """One value of a cell.

    Attributes:
        name: What it is.
        text: The value.
        expected: What it should have been; None if nothing is wrong with it.
        varies: Whether the value differed when the same program was run again.
    """

    name: str
    text: str
    expected: str | None
    varies: bool


@dataclass(frozen=True)
class Cell:
    """One row in one step.

    Attributes:
        classes: The names of its CSS classes.
        ended: Whether an episode ended there.
        parts: The values.
    """

    classes: str
    ended: bool
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Timeline:
    """The last steps before a failure.

    Attributes:
        columns: The title of each step or reset, and whether something is wrong there.
        rows: The number of each row, whether what is wrong is about it, and its cells.
    """

    columns: list[tuple[str, bool]]
    rows: list[tuple[int, bool, list[Cell]]]


def found_of(result: Result) -> Found | None:
    """What came and what was expected; None if that is not known."""
    found = result.finding
    if found is None:
        return None
    if result.status == "errored":
        got = said = f"{found.what} raised {found.got}"
    else:
        got = f"{found.what} = {found.got}"
        said = f"{found.what}={found.got}, but should be {found.should} [{found.place}]"
    return Found(got, found.place, found.should, result.message.removeprefix(said).strip())


def timeline_of(result: Result) -> Timeline | None:
    """The last steps before a failure; None if there were none."""
    events = _events(result.timeline)
    if not events:
        return None
    found = result.finding
    rows = []
    for k, first in enumerate(events[0]):
        concerned = found is None or found.row in (None, first.row)
        cells = [_cell(event[k], found if concerned else None) for event in events]
        rows.append((first.row, concerned, cells))
    return Timeline([(_title(event[0]), _is_here(event[0], found)) for event in events], rows)


def _events(moments: tuple[Moment, ...]) -> list[list[Moment]]:
    """The moments of each step or reset, all with the same rows."""
    events: list[list[Moment]] = []
    for moment in moments:
        if not events or moment.row <= events[-1][-1].row:
            events.append([])
        events[-1].append(moment)
    return events


def _title(moment: Moment) -> str:
    return "reset" if moment.event == "reset" else f"step\N{NO-BREAK SPACE}{moment.step}"


def _is_here(moment: Moment, found: Finding | None) -> bool:
    if found is None or moment.step != found.step:
        return False
    return moment.event == "step" or found.step == 0


def _cell(moment: Moment, found: Finding | None) -> Cell:
    found = found if _is_here(moment, found) else None
    wrong = _part_of(found.what) if found else ""
    parts = []
    for name, text in moment.parts.items():
        if name == wrong and found is not None:
            parts.append(Part(name, text or "\N{EN DASH}", found.should, name in moment.varies))
        elif text:
            parts.append(Part(name, text, None, name in moment.varies))
    whole = found is not None and not wrong
    words = [moment.event, *["ended"] * moment.ended, *["wrong"] * whole]
    return Cell(" ".join(words), moment.ended, tuple(parts))


def _part_of(what: str) -> str:
    """Which part of a moment an expression is about; empty if none, or one of several."""
    found = {_PART[name] for name in re.findall(r"[a-z_]+", what) if name in _PART}
    return found.pop() if len(found) == 1 else ""
