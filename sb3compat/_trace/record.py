"""What a trace holds: layouts, endings, calls and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from sb3compat._convert.types import Info, Value

# Whether a value is the last observation of the episode, the first of the next one, or neither.
Role = Literal["", "final", "first"]


@dataclass(frozen=True)
class Part:
    """One value that a row got from a call, or gave to it.

    Attributes:
        name: What it is, as a user writes it: `obs`, `infos["final_obs"]`.
        value: The value.
        role: Which observation it is, if it is the last one or the first of the next episode.
    """

    name: str
    value: Value
    role: Role = ""


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
        name: The call: `reset`, `step 17`, `reset_mask`.
        parts: The values, in the order in which they are shown.
        infos: The whole info of the row.
        ended: Whether the row's episode ended in this call.
        acted: Whether the row took the action. A reset takes none, nor does the step in which
            a NEXT_STEP environment resets the row.
        marks: What looks wrong.
    """

    name: str
    parts: tuple[Part, ...]
    infos: Info
    ended: bool = False
    acted: bool = False
    marks: tuple[Mark, ...] = ()

    def part(self, name: str) -> Part | None:
        """The value of this name, or None."""
        return next((part for part in self.parts if part.name == name), None)

    def marked(self, marks: list[Mark]) -> Call:
        """The same call with these marks."""
        return replace(self, marks=tuple(marks))


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
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Layout:
    """What one API sees.

    Attributes:
        api: The API: `SB3 VecEnv`, or `Gymnasium NEXT_STEP`, `SAME_STEP`, `DISABLED`.
        how: How the environment came to have it: `as it is`, `to_sb3`, `to_gymnasium`.
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
        found = [m for ending in self.endings for call in ending.calls for m in call.marks]
        return tuple(dict.fromkeys(found))

    @property
    def by_place(self) -> Mapping[tuple[int, int], Ending]:
        """The endings by row and number of the episode."""
        return {(ending.row, ending.episode): ending for ending in self.endings}
