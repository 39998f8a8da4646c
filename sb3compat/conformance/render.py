"""The script of a demand that does not hold: the calls of the records, and the assertion."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy

from sb3compat.conformance.findings import Finding
from sb3compat.conformance.judge import Demand
from sb3compat.conformance.program.script import PRELUDE, to_source
from sb3compat.conformance.record import Call, Record
from sb3compat.conformance.recording import source_of
from sb3compat.conformance.values import Several, Value

# The name in a script for a value of an earlier call: a copy, or the object itself.
_COPY, _HELD = "before", "held"
# The name for the actions as they were before a step.
_GIVEN = "given"
# A script that needs the results of more calls than these keeps all results in a list.
_LOG, _MOST_KEPT = "log", 4

equal = PRELUDE["equal"]

Named = list[tuple[Value, str]]


def lines_of(records: Sequence[Record], demand: Demand) -> tuple[str, ...]:
    """The statements of a script that ends with the assertion.

    Args:
        records: The records, whose last calls are the last that matter.
        demand: What does not hold.
    """
    records = _with_others(records, demand)
    named = _named(records, demand)
    logged = _is_logged(demand)
    lines: list[str] = [f"{_LOG} = []"] if logged else []
    for record, place in _in_order(records):
        if place is None:
            lines.append(record.made)
            continue
        call, before = record.calls[place], record.calls[:place]
        lines += _logging(call, before, demand) if logged else _statements(call, before, named)
    # The assertion asks for what the last call returned by itself.
    if any(value.name == lines[-1] for value in demand.values):
        lines.pop()
    return (*lines, _assertion(records, demand, named))


def shortened(records: Sequence[Record], demand: Demand) -> list[Record]:
    """The instances that a demand is about, each up to the last call that it is about.

    Imports, objects of the caller, and what these were made of stay as they are.
    """
    parts = [part for value in demand.values for part in getattr(value, "parts", [value])]
    calls = {part.call for part in parts}
    instances = [record for record in records if record.made.endswith((" = make_env()", "]()"))]
    asked_for = [part.name for part in parts if part.call < 0]
    texts = " ".join([*asked_for, *(each.made for each in records if each not in instances)])
    found = []
    for record in records:
        short = copy(record)
        if record in instances and not re.search(rf"\b{re.escape(record.name)}\b", texts):
            asked = [k for k, call in enumerate(record.calls) if call.number in calls]
            if not asked:
                continue
            short.calls = record.calls[: asked[-1] + 1]
        found.append(short)
    return found


def _in_order(records: Sequence[Record]) -> list[tuple[Record, int | None]]:
    """The places of the calls in the order of the script; None for what makes a record."""
    found: list[tuple[int, Record, int | None]] = []
    for record in records:
        found.append((record.begin, record, None))
        found += [(call.number, record, place) for place, call in enumerate(record.calls)]
    # What makes a record comes before its first call, which may have the same number.
    return [(record, place) for _, record, place in sorted(found, key=lambda each: each[0])]


def _calls(records: Sequence[Record]) -> list[Call]:
    return [record.calls[place] for record, place in _in_order(records) if place is not None]


def _with_others(records: Sequence[Record], demand: Demand) -> Sequence[Record]:
    """The records, and the others that the demand holds the first of them against."""
    wanted = {value.call for value in demand.values}
    others = (other for other in records[0].others.values() if other not in records)
    return [*records, *(one for one in others if wanted & {call.number for call in one.calls})]


def _is_logged(demand: Demand) -> bool:
    """Whether the values of a demand are from too many calls to keep each by itself."""
    several = any(isinstance(value, Several) for value in demand.values)
    return several or len({value.call for value in demand.values}) > _MOST_KEPT


def _logging(call: Call, before: Sequence[Call], demand: Demand) -> list[str]:
    """The statements of a call, and the one that adds what is asked of it to the log."""
    names = _logged_names(call, demand)
    results = ", ".join(f"{name!r}: {name}" for name in names)
    added = [f"{_LOG}.append(snapshot({{{results}}}))"] if results else []
    if "actions" in names:
        return [f"actions = {to_source(call.op.args[0])}", _step_with_actions(call), *added]
    return [statement(call, before, names), *added]


def _step_with_actions(call: Call) -> str:
    return f"{_results(call)} = {call.env}.step(actions)"


def _logged_names(call: Call, demand: Demand) -> list[str]:
    """What the log has of a call: those of its results that are asked for."""
    parts = [part for value in demand.values for part in getattr(value, "parts", [value])]
    asked = {value.name for value in demand.values}
    mine = {part.name for part in parts if part.call == call.number}
    known = (*call.names, "reset_infos") if _has_results(call) else ()
    found = [name for name in map(call.name_of, known) if name in asked]
    found += ["actions"] * ("actions" in asked and call.is_step)
    return [*found, *(name for name in map(call.name_of, ("result", "error")) if name in mine)]


def _has_results(call: Call) -> bool:
    return call.complete and bool(call.names)


def statements(records: Sequence[Record]) -> Iterator[str]:
    """The statements of records, the last of which an exception has ended."""
    for record, place in _in_order(records):
        if place is None:
            yield record.made
        else:
            yield statement(record.calls[place], record.calls[:place])
    for record in records:
        if record.failed_op is not None:
            yield record.failed_op.source(record.name)


def _statements(call: Call, before: Sequence[Call], named: Named) -> list[str]:
    """The statements of a call, and those that keep what the assertion is about."""
    mine = {value.name for value, _ in named if value.call == call.number}
    if "actions" in mine:
        given = to_source(call.op.args[0])
        lines = [f"{_GIVEN} = {given}", f"actions = deepcopy({_GIVEN})"]
        return [*lines, _step_with_actions(call)]
    lines = [statement(call, before, mine)]
    kept = {name: value for value, name in named if value.call == call.number}
    for name, value in kept.items():
        if name != value.name:
            lines.append(f"{name} = {value.name if value.is_held else f'snapshot({value.name})'}")
    return lines


def _results(call: Call) -> str:
    return ", ".join(call.name_of(name) for name in call.names)


def statement(call: Call, before: Sequence[Call] = (), asked: Collection[str] = ()) -> str:
    """The statement of a call, with names for the results if the script asks for them."""
    source = source_of(call, before)
    if (error := call.name_of("error")) in asked:
        return f"{error} = {source if call.op.kind == 'function' else f'caught(lambda: {source})'}"
    if call.is_caught and call.failure is not None:
        return f"caught(lambda: {source})"
    if (result := call.name_of("result")) in asked:
        return f"{result} = {source}"
    return f"{_results(call)} = {source}" if _has_results(call) else source


def _named(records: Sequence[Record], demand: Demand) -> Named:
    """The values, each with the name that the script has for the whole of it."""
    if _is_logged(demand):
        calls = [call for call in _calls(records) if _logged_names(call, demand)]
        places = {call.number: place for place, call in enumerate(calls)}
        return [(value, _in_log(value, places)) for value in demand.values]
    latest = {
        call.name_of(name): (call, name)
        for call in _calls(records)
        for name in (*call.copies, "result")
    }
    found: dict[tuple[int, str, bool], str] = {}
    for value in demand.values:
        key = (value.call, value.name, value.is_held)
        if value.name == "actions":
            found[key] = "actions" if value.is_held else _GIVEN
        elif value.call < 0 or _has_still(*latest[value.name], value):
            found[key] = value.name
        elif key not in found:
            kind = _HELD if value.is_held else _COPY
            taken = sum(name.startswith(kind) for name in found.values())
            found[key] = f"{kind}_{taken + 1}" if taken else kind
    return [(value, found[value.call, value.name, value.is_held]) for value in demand.values]


def _has_still(call: Call, name: str, value: Value) -> bool:
    """Whether what the last call of a name has returned is this value at the end, too."""
    changed = name in call.copies and not equal(call.live[name], call.copies[name])
    return value.call == call.number and (value.is_held or not changed)


def _in_log(value: Value, places: Mapping[int, int]) -> str:
    """The source for a value of a call, or of several calls, in the log."""
    if value.call < 0:
        return value.name
    if isinstance(value, Several):
        where = tuple(places[part.call] for part in value.parts)
        return f"{_LOG}[k][{value.name!r}] for k in {where}"
    return f"{_LOG}[{places[value.call]}][{value.name!r}]"


def _assertion(records: Sequence[Record], demand: Demand, named: Named) -> str:
    sources = [value.source(name) for value, name in named]
    condition = demand.condition.format(*sources)
    _, message = told(records, demand)
    if not demand.because:
        return f"assert {condition}, {message!r}"
    return (
        f"try:\n    assert {condition}\n"
        f"except Exception as error:\n    raise AssertionError({message!r}) from error"
    )


def told(records: Sequence[Record], demand: Demand) -> tuple[Finding, str]:
    """The broken demand in parts, and in one line."""
    records = _with_others(records, demand)
    what = demand.what.format(*_shown(records, demand))
    own = next((r for r in reversed(records) if r.name == "env"), records[0])
    step = max((call.step for call in own.calls), default=0)
    finding = Finding(what, demand.got, demand.should, step, demand.row, demand.bounds)
    place = f"[{finding.place}]{demand.because}"
    return finding, f"{what}={finding.got}, but should be {finding.should} {place}"


def _shown(records: Sequence[Record], demand: Demand) -> Iterator[str]:
    """The values as the message names them: one that is in the log, as its call does."""
    for value, name in _named(records, demand):
        alone = _is_logged(demand) and not isinstance(value, Several)
        yield value.source(value.name if alone else name)
