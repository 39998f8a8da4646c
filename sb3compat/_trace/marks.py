"""What breaks the contract around the ends of episodes, by the clauses of the kit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from sb3compat._trace.record import Mark
from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.contract import BASICS, Check
from sb3compat.conformance.findings import Family
from sb3compat.conformance.judge import Demand
from sb3compat.conformance.record import Record
from sb3compat.conformance.values import Several

# The groups of the clauses that mark calls. Those that come before them only prevent marks that
# would follow from another mistake.
_GROUPS = "episode end"
# What has to hold for there to be episodes and rows at all.
_SHAPES: dict[Family, tuple[str, ...]] = {
    "vec_env": (*BASICS["vec_env"], "dones_shape", "infos_n_dicts"),
    "vector_env": BASICS["vector_env"],
}


class Judgement:
    """A record, judged by the clauses of the kit.

    Args:
        record: The record.

    Raises:
        ValueError: If no episodes can be found in what the environment has returned.
    """

    def __init__(self, record: Record) -> None:
        subject = record.subject
        known = checks_of(subject.family, subject.mode)
        self._record = record
        self._checks = {check.id: check.suited_to(subject) for check in known}
        self._broken: dict[str, list[Demand] | None] = {}
        for name in _SHAPES[subject.family]:
            for demand in self._judged(name) or ():
                hint = f"`sb3compat explain {name}` says what it asks for."
                raise ValueError(f"{_mark(name, demand).text}. {hint}")
        about_ends = [c.id for c in self._checks.values() if c.group.startswith(_GROUPS)]
        self._found = [(name, each) for name in about_ends for each in self._judged(name) or ()]

    def marks(self, row: int, call: int, *, ended: bool) -> tuple[Mark, ...]:
        """What is wrong with a call of a row, whose episode may have ended there."""
        found = [
            _mark(name, demand)
            for name, demand in self._found
            if demand.row in (None, row) and _is_about(demand, call, ended=ended)
        ]
        return tuple(dict.fromkeys(found))

    def _judged(self, name: str) -> list[Demand] | None:
        """The demands of a clause that do not hold; None if another mistake made it pointless."""
        if name not in self._broken:
            check = self._checks.get(name)
            # Checks that call the environment, or compare several records, demand nothing here.
            if check is None or not check.is_clause or check.variant is not None:
                self._broken[name] = []
            elif any(self._judged(before) != [] for before in check.after):
                self._broken[name] = None
            else:
                needy = self._record.subject.missing(check.needs)
                self._broken[name] = [] if needy else list(_broken(check, self._record))
        return self._broken[name]


def _broken(check: Check, record: Record) -> Iterator[Demand]:
    # Some exceptions say that it cannot be told; `sb3compat check` reports the others.
    with suppress(Exception):
        yield from (demand for demand in check.function(record) if not demand.holds())


def _is_about(demand: Demand, call: int, *, ended: bool) -> bool:
    """Whether a demand is about this call; one of several ends is about each of them."""
    first = demand.values[0]
    return ended if isinstance(first, Several) else call == first.call


def _mark(name: str, demand: Demand) -> Mark:
    what = demand.what.format(*(value.source(value.name) for value in demand.values))
    return Mark(name, f"{what}={demand.got}, but should be {demand.should}")
