"""The parts of a trace: layouts, endings, calls and values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from sb3compat._convert.types import Info
from sb3compat.conformance.findings import plain

# Whether a value is the last observation of the episode, the first of the next one, or neither.
Role = Literal["", "final", "first"]

# The most characters of a value.
_CHARACTERS = 200


@dataclass(frozen=True)
class CallValue:
    """One value that a row got from a call, or gave to it.

    Attributes:
        name: What it is, as a user writes it: `obs`, `infos["final_obs"]`.
        value: The value.
        role: Which observation it is, if it is the last one or the first of the next episode.
    """

    name: str
    value: Any
    role: Role = ""

    @property
    def text(self) -> str:
        """The value in few characters, and its role for output without colours."""
        said = {"final": " (last)", "first": " (first)", "": ""}[self.role]
        return plain(self.value, _CHARACTERS) + said


@dataclass(frozen=True)
class Mark:
    """Something that looks wrong.

    Attributes:
        check: The id of the kit's check for it: `sb3compat explain ID`.
        text: What looks wrong, in one sentence.
    """

    check: str
    text: str


@dataclass(frozen=True)
class Call:
    """One call of `reset` or `step`, as one row sees it.

    Attributes:
        name: The call: `reset`, `step 17`, `reset of the row`.
        values: The values, in the order in which they are shown.
        infos: The whole info of the row.
        ended: Whether the row's episode ended in this call.
        acted: Whether the row took the action. A reset takes none, nor does the step in which
            a NEXT_STEP environment resets the row.
        marks: What looks wrong.
    """

    name: str
    values: tuple[CallValue, ...]
    infos: Info
    ended: bool = False
    acted: bool = False
    marks: tuple[Mark, ...] = ()

    def value(self, name: str) -> CallValue | None:
        """The value of this name, or None."""
        return next((value for value in self.values if value.name == name), None)


@dataclass(frozen=True)
class Ending:
    """The end of one episode in one row: the calls around it.

    Attributes:
        row: The row.
        episode: The number of the row's episode, from 1.
        length: How many actions the episode took.
        calls: The calls around the end. The one in which the episode ended has `ended=True`.
    """

    row: int
    episode: int
    length: int
    calls: list[Call]


@dataclass(frozen=True)
class Layout:
    """What one API sees.

    Attributes:
        api: The API: `SB3 VecEnv`, or `Gymnasium NEXT_STEP`, `SAME_STEP`, `DISABLED`.
        how: How the environment is presented with this API: `as it is`, `to_sb3`, `to_gymnasium`.
        endings: The ends of episodes, by row and then by episode.
        refusal: Why the environment cannot be presented like this; empty if it can.
    """

    api: str
    how: str
    endings: tuple[Ending, ...] = ()
    refusal: str = ""

    @property
    def marks(self) -> tuple[Mark, ...]:
        """What looks wrong in any of the calls, each once."""
        return marks_in([self])


def marks_in(layouts: Iterable[Layout]) -> tuple[Mark, ...]:
    """What looks wrong in these layouts, each once."""
    calls = [call for layout in layouts for ending in layout.endings for call in ending.calls]
    return tuple(dict.fromkeys(mark for call in calls for mark in call.marks))
