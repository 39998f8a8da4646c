"""What breaks the contract around the ends of episodes, by the clauses of the kit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

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


@dataclass(frozen=True)
class Found:
    """A demand that does not hold.

    Attributes:
        check: The id of the clause that makes it.
        demand: The demand.
    """

    check: str
    demand: Demand

    @cached_property
    def mark(self) -> Mark:
        """What is wrong."""
        demand = self.demand
        what = demand.what.format(*(value.source(value.name) for value in demand.values))
        return Mark(self.check, f"{what}={demand.got}, but should be {demand.should}")

    def is_about(self, row: int, call: int, *, ended: bool) -> bool:
        """Whether it is about this call of a row: one of several ends is about each of them."""
        first = self.demand.values[0]
        here = ended if isinstance(first, Several) else call == first.call
        return here and self.demand.row in (None, row)


def found_in(record: Record) -> list[Found]:
    """What breaks the contract around the ends of episodes.

    Raises:
        ValueError: If no episodes can be found in what the environment returns.
    """
    judging = _Judging(record)
    for name in _SHAPES[record.subject.family]:
        for demand in judging.broken(name) or ():
            text = Found(name, demand).mark.text
            raise ValueError(f"{text}. `sb3compat explain {name}` says what it asks for.")
    return [
        Found(name, demand)
        for name, check in judging.checks.items()
        if check.group.startswith(_GROUPS)
        for demand in judging.broken(name) or ()
    ]


class _Judging:
    """The clauses of the kit, each judged once."""

    def __init__(self, record: Record) -> None:
        subject = self._subject = record.subject
        self._record = record
        known = checks_of(subject.family, subject.mode)
        self.checks = {check.id: check.suited_to(subject) for check in known}
        self._broken: dict[str, list[Demand] | None] = {}

    def broken(self, name: str) -> list[Demand] | None:
        """The demands of a clause that do not hold; None if another mistake made it pointless."""
        if name not in self._broken:
            check = self.checks.get(name)
            # Checks that call the environment, or compare several records, demand nothing here.
            if check is None or not check.is_clause or check.variant is not None:
                self._broken[name] = []
            elif any(self.broken(before) != [] for before in check.after):
                self._broken[name] = None
            else:
                needy = self._subject.missing(check.needs)
                self._broken[name] = [] if needy else list(_broken(check, self._record))
        return self._broken[name]


def _broken(check: Check, record: Record) -> Iterator[Demand]:
    try:
        yield from (demand for demand in check.clause(record) if not demand.holds())
    except Exception:  # also what says that it cannot be told; `sb3compat check` reports others
        return
